import { expect, test } from "vitest";
import { createClient, finalResponse, type LmspEvent, outputText } from "./index.ts";
import { type Answer, encode, eventsOf, fakeService, json, problem, response, stream } from "./testing/fake-service.ts";

const fast = { firstDelayMs: 1, maxDelayMs: 2 };

function clientOf(...answers: readonly Answer[]) {
  const service = fakeService(...answers);
  const client = createClient({ baseUrl: "http://host:1", fetch: service.fetch, resume: { ...fast, attempts: 3 } });
  return { client, seen: service.seen };
}

async function collect(events: AsyncIterable<LmspEvent>): Promise<LmspEvent[]> {
  const all: LmspEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const words = ["Grüß", " dich", ", 世界", " 🌍"];
const whole = eventsOf(...words);

test("sends the request and gives its events", async () => {
  const { client, seen } = clientOf(stream(encode(whole)));
  expect(await collect(client.responses.stream({ model: "m", input: "hi" }))).toEqual(whole);
  expect(seen).toMatchObject([
    {
      method: "POST",
      url: "http://host:1/lmsp/v1/responses",
      body: { model: "m", input: "hi", stream: true },
      headers: { accept: "text/event-stream", "content-type": "application/json" },
    },
  ]);
});

test.each([1, 2, 3, 7, 64, 1000])("reads a stream in pieces of %i bytes", async (piece) => {
  const { client } = clientOf(stream(encode(whole), { piece }));
  expect(await collect(client.responses.stream({ model: "m", input: "hi" }))).toEqual(whole);
});

test("reads comments, CRLF, a byte order mark and unnumbered events", async () => {
  const progress = { type: "response.progress", kind: "loading" };
  const text = `\uFEFF: hello\r\n\r\ndata: ${JSON.stringify(progress)}\r\n\r\n`;
  const bytes = new Uint8Array([...new TextEncoder().encode(text), ...encode(whole)]);
  const { client } = clientOf(stream(bytes, { piece: 5 }));
  expect(await collect(client.responses.stream({ model: "m", input: "hi" }))).toEqual([progress, ...whole]);
});

// The service ends the first connection after any byte; the second one replays what follows Last-Event-ID.
test.each(["close", "break"] as const)("resumes after every byte, connection lost by %s", async (end) => {
  const bytes = encode(whole);
  const checkCut = async (cut: number): Promise<void> => {
    const headers = { "x-lmsp-response-id": "resp_1" };
    const resumed: Answer = (request) => {
      const after = Number(request.headers["last-event-id"] ?? 0);
      return stream(encode(whole.slice(after)))(request);
    };
    const { client, seen } = clientOf(stream(bytes.slice(0, cut), { end, headers }), resumed);
    expect(await collect(client.responses.stream({ model: "m", input: "hi" })), `cut at ${cut}`).toEqual(whole);
    if (seen.length > 1) expect(seen[1]?.url).toBe("http://host:1/lmsp/v1/responses/resp_1/events");
  };
  await Promise.all(Array.from({ length: bytes.length }, (_, cut) => checkCut(cut)));
});

test("passes over what a resumed connection repeats", async () => {
  const { client } = clientOf(stream(encode(whole.slice(0, 3)), { end: "break" }), stream(encode(whole)));
  expect(await collect(client.responses.events("resp_1"))).toEqual(whole);
});

test("hears of the end of a response that a crash cut, also when it had seen more", async () => {
  const interrupted = response("failed", "");
  const end = { type: "response.failed", sequence: 3, at_ms: 5, response: interrupted } as const;
  const { client, seen } = clientOf(stream(encode(whole.slice(0, 5)), { end: "break" }), stream(encode([end])));
  expect(await collect(client.responses.events("resp_1"))).toEqual([...whole.slice(0, 5), end]);
  expect(seen).toHaveLength(2);
});

test("refuses a gap", async () => {
  const { client } = clientOf(stream(encode([...whole.slice(0, 2), ...whole.slice(3)])));
  await expect(collect(client.responses.events("resp_1"))).rejects.toMatchObject({
    code: "invalid-answer",
    detail: expect.stringContaining("from event 2 to 4"),
  });
});

test("reads on after a sequence, and nothing after the end", async () => {
  const { client, seen } = clientOf(stream(encode(whole.slice(4))), () => new Response(null, { status: 204 }));
  expect(await collect(client.responses.events("resp_1", { after: 4 }))).toEqual(whole.slice(4));
  expect(seen[0]?.headers["last-event-id"]).toBe("4");
  expect(await collect(client.responses.events("resp_1", { after: 7 }))).toEqual([]);
});

test("gives up after the allowed tries without anything new", async () => {
  const { client, seen } = clientOf(stream(encode(whole.slice(0, 2)), { end: "break" }), () => {
    throw new TypeError("fetch failed");
  });
  await expect(collect(client.responses.events("resp_1"))).rejects.toMatchObject({
    code: "connection-lost",
    detail: expect.stringContaining("{after: 2}"),
  });
  expect(seen.length).toBe(4);
});

test("each new event gives new tries", async () => {
  const pieces = whole.map((event) => stream(encode([event]), { end: "break" }));
  const { client } = clientOf(...pieces);
  expect(await collect(client.responses.events("resp_1"))).toEqual(whole);
});

test("takes up the stream again when a busy service refuses for a while", async () => {
  const { client } = clientOf(
    stream(encode(whole.slice(0, 2)), { end: "break" }),
    problem("draining", 503, { retry_after_ms: 1 }),
    stream(encode(whole.slice(2))),
  );
  expect(await collect(client.responses.events("resp_1"))).toEqual(whole);
});

test("a final refusal on resuming is the error", async () => {
  const expired = problem("events-expired", 410, { first_sequence: 9 });
  const { client, seen } = clientOf(stream(encode(whole.slice(0, 2)), { end: "break" }), expired);
  await expect(collect(client.responses.events("resp_1"))).rejects.toMatchObject({
    code: "events-expired",
    problem: { first_sequence: 9 },
  });
  expect(seen.length).toBe(2);
});

test("a problem in a running stream is the error", async () => {
  const expired = { type: "urn:lmsp:problem:events-expired", status: 410, detail: "Gone.", first_sequence: 9 };
  const bytes = new TextEncoder().encode(`event: error\ndata: ${JSON.stringify(expired)}\n\n`);
  const { client, seen } = clientOf(stream(bytes));
  await expect(collect(client.responses.events("resp_1"))).rejects.toMatchObject({
    code: "events-expired",
    status: 410,
    problem: { first_sequence: 9 },
  });
  expect(seen.length).toBe(1);
});

test("a connection that falls silent counts as lost", async () => {
  const service = fakeService(stream(encode(whole.slice(0, 2)), { end: "hang" }), stream(encode(whole.slice(2))));
  const client = createClient({ baseUrl: "host:1", fetch: service.fetch, resume: { ...fast, silenceMs: 20 } });
  expect(await collect(client.responses.events("resp_1"))).toEqual(whole);
});

test("the first connection is not tried again", async () => {
  const { client, seen } = clientOf(problem("overloaded", 503));
  await expect(collect(client.responses.stream({ model: "m", input: "hi" }))).rejects.toMatchObject({
    code: "overloaded",
  });
  expect(seen.length).toBe(1);
});

test.each([
  ["no events", () => new Response("<html>", { headers: { "content-type": "text/html" } })],
  ["no JSON in an event", stream(new TextEncoder().encode("data: {\n\n"))],
  ["an event without type", stream(new TextEncoder().encode("data: {}\n\n"))],
] satisfies [string, Answer][])("refuses an answer that is not LMSP: %s", async (_name, answer) => {
  const { client } = clientOf(answer);
  await expect(collect(client.responses.events("resp_1"))).rejects.toMatchObject({ code: "invalid-answer" });
});

const hanging = stream(encode(whole.slice(0, 3)), { end: "hang", headers: { "x-lmsp-response-id": "resp_1" } });

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 1));
}

test("leaving a stream early cancels the response and closes the connection", async () => {
  const { client, seen } = clientOf(hanging, json(response("cancelled")));
  for await (const event of client.responses.stream({ model: "m", input: "hi" })) {
    if (event.type === "response.in_progress") break;
  }
  await until(() => seen.length === 2 && seen[0]?.signal?.aborted === true);
  expect(seen[1]).toMatchObject({ method: "POST", url: "http://host:1/lmsp/v1/responses/resp_1/cancel" });
});

test("aborting a stream rejects with the reason and cancels the response", async () => {
  const { client, seen } = clientOf(hanging, json(response("cancelled")));
  const abort = new AbortController();
  const reading = collect(client.responses.stream({ model: "m", input: "hi" }, { signal: abort.signal }));
  await until(() => seen.length === 1);
  abort.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
  await until(() => seen.length === 2);
  expect(seen[1]?.url).toMatch(/\/resp_1\/cancel$/);
});

test("aborting before the id is known cancels as soon as it is", async () => {
  let answerNow: () => void = () => {};
  const slow: Answer = async (request) => {
    await new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    return hanging(request);
  };
  const { client, seen } = clientOf(slow, json(response("cancelled")));
  const abort = new AbortController();
  const reading = collect(client.responses.stream({ model: "m", input: "hi" }, { signal: abort.signal }));
  await until(() => seen.length === 1);
  abort.abort(new Error("enough"));
  await expect(reading).rejects.toThrow("enough");
  answerNow();
  await until(() => seen.length === 2);
  expect(seen[1]?.url).toMatch(/\/resp_1\/cancel$/);
});

test.each([
  ["a watcher", { watch: true }],
  ["a stream that asked to go on", { watch: false }],
])("leaving early cancels nothing: %s", async (_name, { watch }) => {
  const { client, seen } = clientOf(hanging);
  const events = watch
    ? client.responses.events("resp_1")
    : client.responses.stream({ model: "m", input: "hi", on_disconnect: "continue" });
  for await (const event of events) if (event.type === "response.in_progress") break;
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect(seen.length).toBe(1);
});

test("aborting a wait between two tries ends it at once", async () => {
  const service = fakeService(stream(encode(whole.slice(0, 2)), { end: "break" }));
  const client = createClient({ baseUrl: "host:1", fetch: service.fetch, resume: { firstDelayMs: 60_000 } });
  const abort = new AbortController();
  const reading = collect(client.responses.events("resp_1", { signal: abort.signal }));
  await until(() => service.seen.length === 1);
  setTimeout(() => abort.abort(new Error("enough")), 5);
  await expect(reading).rejects.toThrow("enough");
});

test("a background stream makes the response and then watches it", async () => {
  const { client, seen } = clientOf(json(response("queued"), 202), stream(encode(whole)));
  const last = await finalResponse(client.responses.stream({ model: "m", input: "hi", background: true }));
  expect(last && outputText(last)).toBe(words.join(""));
  expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
    "POST http://host:1/lmsp/v1/responses",
    "GET http://host:1/lmsp/v1/responses/resp_1/events",
  ]);
});
