import type { LogEntry, Response, ResponseEvent } from "@plenum/core";
import { requestDefaults } from "@plenum/core";
import { textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { ResponsesStream, type StreamPlace } from "../../shared/openai/responses/stream.ts";
import { beginCall } from "../../shared/testing/call-door.ts";
import { toWireError } from "../errors.ts";
import { readEvents } from "../testing/read-events.ts";
import { door, errorOf, setUp } from "../testing/set-up.ts";

const body = { model: "m-tiny", input: "Hi", background: true };

/** Says one word, then waits to be let go on. */
function gated(bench: ReturnType<typeof setUp>): () => void {
  let open = (): void => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const whole = textAnswer(["Hel", "lo", " you"]);
  bench.backend.answer = async function* (request, signal) {
    let pieces = 0;
    for (const events of whole(request, signal) as Iterable<never>) {
      yield events;
      pieces += 1;
      if (pieces === 2) await gate;
    }
  };
  return open;
}

async function untilDone(bench: ReturnType<typeof setUp>, id: string): Promise<void> {
  for (;;) {
    const { status } = JSON.parse((await bench.get(`/v1/responses/${id}`)).text);
    if (status !== "queued" && status !== "in_progress") return;
    await new Promise(setImmediate);
  }
}

describe("background responses", () => {
  it("answer at once, are read while they run, and streamed again with the same numbers from every place", async () => {
    const bench = setUp();
    const open = gated(bench);
    const accepted = await bench.post("/v1/responses", body);
    expect(accepted.status).toBe(200);
    const queued = JSON.parse(accepted.text);
    expect(queued).toMatchObject({ background: true, store: true, object: "response" });
    expect(["queued", "in_progress"]).toContain(queued.status);
    const { id } = queued;
    const live = beginCall(door, bench.core, { method: "GET", path: `/v1/responses/${id}?stream=true` });
    open();
    await live.done;
    const all = readEvents(live.responder.text);
    expect(all.slice(0, 3).map(({ name }) => name)).toEqual([
      "response.created",
      "response.queued",
      "response.in_progress",
    ]);
    expect(all.at(-1)).toMatchObject({ name: "response.completed", json: { response: { status: "completed" } } });
    expect(all.map(({ json }) => json.sequence_number)).toEqual(all.map((_event, index) => index));
    for (let after = 0; after < all.length; after += 1) {
      const again = await bench.get(`/v1/responses/${id}?stream=true&starting_after=${after}`);
      expect(readEvents(again.text)).toEqual(all.slice(after + 1));
    }
    const whole = await bench.get(`/v1/responses/${id}`);
    expect(JSON.parse(whole.text)).toMatchObject({ status: "completed", background: true });
  });

  it("stream to who made them and go on when that connection is lost", async () => {
    const bench = setUp();
    const open = gated(bench);
    const { responder, done } = beginCall(door, bench.core, {
      method: "POST",
      path: "/v1/responses",
      body: { ...body, stream: true },
    });
    while (!responder.text.includes("Hel")) await new Promise(setImmediate);
    const seen = readEvents(responder.text);
    responder.close();
    await done;
    open();
    const id = seen[0]?.json.response.id;
    await untilDone(bench, id);
    const last = seen.at(-1)?.json.sequence_number;
    const rest = await bench.get(`/v1/responses/${id}?stream=true&starting_after=${last}`);
    const text = [...seen, ...readEvents(rest.text)]
      .filter(({ name }) => name === "response.output_text.delta")
      .map(({ json }) => json.delta);
    expect(text).toEqual(["Hel", "lo", " you"]);
  });

  it("are cancelled on request", async () => {
    const bench = setUp();
    bench.backend.answer = async function* (_request, signal) {
      yield [{ type: "accepted" }];
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const { id } = JSON.parse((await bench.post("/v1/responses", body)).text);
    const cancelled = await bench.post(`/v1/responses/${id}/cancel`, undefined);
    expect(JSON.parse(cancelled.text)).toMatchObject({ id, status: "cancelled" });
  });

  it.each(["-1", "x", "1.5"])("refuses to start after %s", async (after) => {
    const bench = setUp();
    const { id } = JSON.parse((await bench.post("/v1/responses", body)).text);
    const answer = await bench.get(`/v1/responses/${id}?stream=true&starting_after=${after}`);
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ param: "starting_after" });
  });
});

describe("a run that was cut", () => {
  const response: Response = {
    id: "resp_x",
    status: "queued",
    background: true,
    model: "m",
    door: "openai",
    output: [],
    finishes: [],
    timings: {},
    attempt: 1,
    priority: 0,
    createdAt: 0,
    metadata: {},
  };
  const atMs = 0;
  const item = { type: "message", id: "msg_x_0", candidate: 0, index: 0, text: "", refusal: "", logprobs: [] } as const;
  const run = (text: string): ResponseEvent[] => [
    { type: "response.in_progress", atMs, runtime: "b" },
    { type: "response.output_item.added", atMs, item: { ...item, status: "in_progress" } },
    { type: "response.output_text.delta", atMs, itemId: item.id, index: 0, delta: text },
  ];
  const events: ResponseEvent[] = [
    { type: "response.created", atMs, response },
    ...run("old"),
    { type: "response.restarted", atMs, attempt: 2 },
    ...run("new"),
    { type: "response.completed", atMs, response: { ...response, status: "completed", attempt: 2 } },
  ];
  const entries: LogEntry[] = events.map((event, index) => ({ sequence: index + 1, event }));

  function stream(from?: StreamPlace): [number, string][] {
    const request = { ...requestDefaults, model: "m", input: { kind: "items", items: [] } } as const;
    const source = new ResponsesStream({ request, toWireError, param: (path) => path, ...(from ? { from } : {}) });
    const shown: [number, string][] = [];
    for (const entry of entries) {
      for (const { json } of source.push(entry)) {
        const { sequence_number: number, type } = JSON.parse(json);
        shown.push([number, type]);
      }
      if (source.hasEnded) break;
    }
    return shown;
  }

  it("ends its stream with an error; the next run follows that number", () => {
    const first = stream();
    expect(first.at(-1)).toEqual([6, "error"]);
    const next = stream({ after: 6 });
    expect(next.map(([number]) => number)).toEqual([7, 8, 9, 10, 11, 12, 13]);
    expect(next[0]).toEqual([7, "response.created"]);
    expect(next.at(-1)).toEqual([13, "response.completed"]);
    expect(stream({ attempt: 2 })).toEqual(next);
    expect(stream({ after: 3 })).toEqual(first.slice(4));
    expect(stream({ after: 9 })).toEqual(next.slice(3));
  });
});
