/** Faults that users reported of servers like this one, told by their names: a whole service before a runtime that has them. */

import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, loadConfig } from "@plenum/server";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  caseAnswers,
  chunk,
  routes,
  sseAnswer,
} from "../../packages/server/src/backends/openai-compatible/testing/fixtures.ts";
import {
  jsonAnswer,
  type ReplayAnswer,
  type ReplayUpstream,
  startReplayUpstream,
} from "../../packages/server/src/backends/shared/testing/replay-upstream.ts";
import { type Json, measured, post, waitFor } from "./service.ts";

let home: string;
let upstream: ReplayUpstream;
let server: Awaited<ReturnType<typeof createServer>>;
/** What the runtime answers now. */
let answer: ReplayAnswer;
const good = jsonAnswer({ choices: [{ index: 0, message: { content: "ok" }, finish_reason: "stop" }] });
const embedded = jsonAnswer({ data: [{ index: 0, embedding: [0.6, 0.8] }] });

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-cases-"));
  upstream = await startReplayUpstream(
    routes({ "/v1/chat/completions": () => answer, "/v1/embeddings": () => embedded }),
  );
  const flags = { home, port: 0, starterModel: false, localRuntimes: false, logLevel: "silent" } as const;
  const config = await loadConfig({ flags, env: {} });
  server = await createServer({
    ...config,
    embedded: { ...config.embedded, enabled: false },
    runtimes: [{ name: "up", kind: "openai-compatible", url: upstream.url, headers: {} }],
  });
  await server.listen();
  await server.core.catalog.ready;
});
afterAll(async () => {
  await server?.close({ drainMs: 0 });
  await upstream?.close();
  await rm(home, { recursive: true, force: true });
});
beforeEach(() => {
  answer = good;
});

const messages = [{ role: "user", content: "Hi" }];
const chat = { model: "m-tiny", messages };
const functions = ["get_weather", "get_time"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
}));

async function ask(path: string, body: unknown, init: RequestInit = post(body)) {
  const found = await fetch(server.url + path, init);
  const text = await found.text();
  return { status: found.status, headers: found.headers, text };
}
const json = async (path: string, body: unknown): Promise<Json> => JSON.parse((await ask(path, body)).text);

/** Data of the events of a stream. */
const dataOf = (text: string): readonly string[] =>
  text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
const sentBody = (): Json => upstream.requests.at(-1)?.body;

/** What a client makes of an answer, whatever the door. */
interface Told {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: Json }[];
}

function ofChat(list: readonly Json[]): Told {
  const calls: { name: string; arguments: string }[] = [];
  let [text, reasoning] = ["", ""];
  for (const { content, reasoning_content, tool_calls } of list) {
    text += content ?? "";
    reasoning += reasoning_content ?? "";
    for (const [place, { index = place, function: called }] of (tool_calls ?? []).entries()) {
      const { name, arguments: written } = calls[index] ?? { name: "", arguments: "" };
      calls[index] = { name: name + (called.name ?? ""), arguments: written + (called.arguments ?? "") };
    }
  }
  return {
    text,
    reasoning,
    calls: calls.map(({ name, arguments: written }) => ({ name, arguments: JSON.parse(written) })),
  };
}

function ofOllama(list: readonly Json[]): Told {
  return {
    text: list.map(({ message }) => message.content).join(""),
    reasoning: list.map(({ message }) => message.thinking ?? "").join(""),
    calls: list.flatMap(({ message }) =>
      (message.tool_calls ?? []).map(({ function: called }: Json) => ({
        name: called.name,
        arguments: called.arguments,
      })),
    ),
  };
}

function ofItems(output: readonly Json[]): Told {
  const textIn = (parts: readonly Json[] | undefined) => (parts ?? []).map(({ text }) => text).join("");
  const items = (type: string) => output.filter((item) => item.type === type);
  return {
    text: items("message")
      .map(({ content }) => textIn(content))
      .join(""),
    reasoning: items("reasoning")
      .map((item) => item.text ?? textIn(item.content) + textIn(item.summary))
      .join(""),
    calls: items("function_call").map(({ name, arguments: written }) => ({ name, arguments: JSON.parse(written) })),
  };
}

const lastResponse = (text: string): Json => JSON.parse(dataOf(text).at(-1) ?? "").response;

/** A chat through each door, streamed and whole. */
const doors: Readonly<Record<string, () => Promise<Told>>> = {
  "OpenAI's chat, streamed": async () => {
    const { text } = await ask("/v1/chat/completions", { ...chat, tools: functions, stream: true });
    const events = dataOf(text);
    expect(events.at(-1)).toBe("[DONE]");
    const chunks: readonly Json[] = events.slice(0, -1).map((event) => JSON.parse(event));
    expect(chunks.filter(({ error }) => error !== undefined)).toEqual([]);
    return ofChat(chunks.flatMap(({ choices }) => choices.map(({ delta }: Json) => delta)));
  },
  "OpenAI's chat, whole": async () => {
    const { choices } = await json("/v1/chat/completions", { ...chat, tools: functions });
    return ofChat([choices[0].message]);
  },
  "Ollama's chat, streamed": async () => {
    const { text } = await ask("/api/chat", { ...chat, tools: functions });
    return ofOllama(
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    );
  },
  "Ollama's chat, whole": async () => ofOllama([await json("/api/chat", { ...chat, tools: functions, stream: false })]),
  "Responses, streamed": async () => {
    const { text } = await ask("/v1/responses", { model: "m-tiny", input: "Hi", stream: true });
    return ofItems(lastResponse(text).output);
  },
  "Responses, whole": async () => ofItems((await json("/v1/responses", { model: "m-tiny", input: "Hi" })).output),
  "LMSP, streamed": async () => {
    const { text } = await ask("/lmsp/v1/responses", { model: "m-tiny", input: "Hi", stream: true });
    return ofItems(lastResponse(text).output);
  },
  "LMSP, whole": async () => ofItems((await json("/lmsp/v1/responses", { model: "m-tiny", input: "Hi" })).output),
};

describe("what a runtime gets wrong is right through every door", () => {
  const weather = { name: "get_weather", arguments: { city: "Paris" } };
  const told = { text: "", reasoning: "", calls: [] };
  const cases: Readonly<Record<string, Partial<Told>>> = {
    "SSE-01": { text: "AB" },
    "SSE-03": { text: "ok" },
    "SSE-05": { text: "世界🌍" },
    "SSE-07": { text: "fin" },
    "SSE-09": { text: "first second" },
    "RSN-01": { text: "42", reasoning: "Let me think" },
    "TC-01": { calls: [weather, { name: "get_time", arguments: { zone: "UTC" } }] },
    "TC-03": { calls: [weather] },
    "TC-05": { calls: [weather] },
  };

  it.each(Object.entries(cases))("%s", async (id, expected) => {
    for (const [door, askDoor] of Object.entries(doors)) {
      [answer = good] = caseAnswers(id);
      expect(await askDoor(), door).toEqual({ ...told, ...expected });
    }
  });

  it("TC-03: id and name go out once", async () => {
    [answer = good] = caseAnswers("TC-03");
    const { text } = await ask("/v1/chat/completions", { ...chat, tools: functions, stream: true });
    expect(text.match(/"id":"c1"/g)).toHaveLength(1);
    expect(text.match(/"name":"get_weather"/g)).toHaveLength(1);
  });

  it.each([
    ["stop", "tool_calls"],
    ["length", "length"],
  ])("TC-05: the end of a call, %s, is %s", async (said, expected) => {
    for (const stream of [true, false]) {
      const call = { index: 0, id: "c1", function: { name: "get_weather", arguments: "{}" } };
      answer = sseAnswer([chunk({ tool_calls: [call] }), chunk({}, said), "[DONE]"]);
      const { text } = await ask("/v1/chat/completions", { ...chat, tools: functions, stream });
      expect(text).toContain(`"finish_reason":"${expected}"`);
    }
  });
});

describe("errors of a runtime", () => {
  it("ERR-01, CTX-01: before the first output they are an answer of their own, in each door's form", async () => {
    for (const stream of [true, false]) {
      [answer = good] = caseAnswers("ERR-01");
      const openai = await ask("/v1/chat/completions", { ...chat, stream });
      expect(openai.status).toBe(400);
      expect(openai.headers.get("content-type")).toMatch(/^application\/json/);
      expect(JSON.parse(openai.text).error).toMatchObject({
        type: "invalid_request_error",
        code: "context_length_exceeded",
      });
      const detail = { type: "exceed_context_size_error", n_prompt_tokens: 5_000, n_ctx: 4_096 };
      answer = jsonAnswer({ error: { code: 400, message: "too long", ...detail } }, 400);
      const native = await ask("/lmsp/v1/responses", { model: "m-tiny", input: "Hi", stream });
      expect(native.text).toMatch(/"limit":4096/);
      expect(native.text).toMatch(/"requested":5000/);
    }
  });

  it("ERR-01: a full runtime's wish when to come back is handed on", async () => {
    answer = jsonAnswer({ error: { message: "full" } }, 503, { "Retry-After": "7" });
    const { status, headers } = await ask("/v1/chat/completions", { ...chat, stream: true });
    expect([status, headers.get("retry-after")]).toEqual([503, "7"]);
  });

  it("ERR-03: bodies of every shape become OpenAI's", async () => {
    const answers = [];
    for (const each of caseAnswers("ERR-03")) {
      answer = each;
      answers.push(await ask("/v1/chat/completions", chat));
    }
    const noJson = { method: "POST", headers: { "content-type": "application/json" }, body: "{" };
    answers.push(await ask("/v1/chat/completions", undefined, noJson));
    answers.push(await ask("/v1/chat/completions", undefined, { method: "PUT" }));
    expect(answers.map(({ status }) => status)).toEqual([422, 400, 400, 502, 502, 400, 405]);
    for (const { text } of answers) {
      expect(JSON.parse(text)).toEqual({
        error: {
          message: expect.stringMatching(/^[^<]+$/),
          type: expect.any(String),
          param: expect.toBeOneOf([null, expect.any(String)]),
          code: expect.toBeOneOf([null, expect.any(String)]),
        },
      });
    }
    expect(answers[0]?.text).toContain("model busy");
  });
});

describe("what goes to the runtime", () => {
  it("USE-01: usage is asked for always, and told when asked", async () => {
    for (const asked of [false, true]) {
      [answer = good] = caseAnswers("USE-01");
      const more = asked ? { stream_options: { include_usage: true } } : {};
      const { text } = await ask("/v1/chat/completions", { ...chat, stream: true, ...more });
      const chunks: readonly Json[] = dataOf(text)
        .slice(0, -1)
        .map((event) => JSON.parse(event));
      expect(sentBody()).toMatchObject({ stream_options: { include_usage: true } });
      const usages = chunks.filter(({ usage }) => (usage ?? null) !== null);
      expect(usages).toEqual(asked ? [chunks.at(-1)] : []);
      if (asked) {
        const usage = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
        expect(chunks.at(-1)).toMatchObject({ choices: [], usage });
      } else expect(chunks.every(({ choices }) => choices.length === 1)).toBe(true);
    }
  });

  it("TC-10: no empty list of tools, and no choice among none", async () => {
    expect((await ask("/v1/chat/completions", { ...chat, tools: [], tool_choice: "auto" })).status).toBe(200);
    expect(sentBody()).not.toHaveProperty("tools");
    expect(sentBody()).not.toHaveProperty("tool_choice");
  });

  it.each<[string, string, Json]>([
    ["a developer message", "/v1/chat/completions", { messages: [{ role: "developer", content: "B" }, ...messages] }],
    [
      "one behind a system message",
      "/v1/chat/completions",
      { messages: [{ role: "system", content: "A" }, { role: "developer", content: "B" }, ...messages] },
    ],
    [
      "one beside instructions",
      "/v1/responses",
      { instructions: "A", input: [{ role: "developer", content: "B" }, ...messages] },
    ],
  ])("REQ-03: %s is one system message, first", async (_name, path, body) => {
    expect((await ask(path, { model: "m-tiny", ...body })).status).toBe(200);
    const sent: readonly Json[] = sentBody().messages;
    expect(sent.map(({ role }) => role)).toEqual(["system", "user"]);
    const hasTwo = JSON.stringify(body).includes('"A"');
    expect(sent[0].content).toMatch(hasTwo ? /^A\s+B$/ : /^B$/);
  });
});

describe("RSP-01: events of Responses", () => {
  it("have their order, numbers and names", async () => {
    [answer = good] = caseAnswers("RSP-01");
    const { text } = await ask("/v1/responses", { model: "m-tiny", input: "Hi", stream: true });
    const events: readonly Json[] = dataOf(text).map((event) => JSON.parse(event));
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const [first] = events;
    expect(events.map(({ sequence_number: number }) => number - first.sequence_number)).toEqual(
      events.map((_event, index) => index),
    );
    expect([...text.matchAll(/^event: (.*)$/gm)].map(([, name]) => name)).toEqual(events.map(({ type }) => type));
    expect(events.at(-1).response).toMatchObject({
      status: "completed",
      output: [{ content: [{ text: "Hello" }] }],
      usage: { input_tokens: 4, output_tokens: 2, total_tokens: 6 },
    });
  });
});

describe("CAN-01: a client that goes away while tokens stream", () => {
  const drip = { text: `data: ${JSON.stringify(chunk({ content: "on " }))}\n\n` };
  function* endless(): Generator<{ readonly text: string } | { readonly pause_ms: number }> {
    for (;;) {
      yield drip;
      yield { pause_ms: 30 };
    }
  }

  /** Resets the connection behind the first text of the answer. */
  function leave(path: string, body: object, headers: object): Promise<void> {
    return new Promise((resolve, reject) => {
      const options = { method: "POST", agent: false, headers: { "content-type": "application/json", ...headers } };
      const sent = request(server.url + path, options, (found) => {
        found.on("error", () => undefined);
        found.on("data", (bytes: Buffer) => {
          if (!bytes.toString().includes("on ")) return;
          found.socket.resetAndDestroy();
          resolve();
        });
      });
      sent.on("error", reject);
      sent.end(JSON.stringify(body));
    });
  }

  it.each([
    ["/v1/chat/completions", { ...chat, stream: true }, {}],
    ["/v1/responses", { model: "m-tiny", input: "Hi", stream: true }, {}],
    ["/api/chat", chat, {}],
    ["/lmsp/v1/responses", { model: "m-tiny", input: "Hi", stream: true }, { "x-lmsp-on-disconnect": "cancel" }],
  ])("%s: the runtime's connection is closed, the record says so", async (path, body, headers) => {
    answer = { writes: endless() };
    const closed = upstream.closedByPeer();
    await leave(path, body, headers);
    const leftAt = performance.now();
    measured(`upstream closed after the client's reset, ${path}`, `${((await closed) - leftAt).toFixed(1)} ms`);
    await waitFor(() => server.core.responses.active === 0);
    const { data } = JSON.parse((await ask("/lmsp/v1/responses?limit=1", undefined, {})).text);
    expect(data[0]).toMatchObject({ status: "cancelled", problem: { reason: "disconnected" } });
    expect(data[0].usage.output_tokens).toBeGreaterThan(0);
    const page = await (await fetch(`${server.url}/metrics`)).text();
    expect(page).toMatch(/^plenum_running(\{.*\})? 0$/m);
  });
});

describe("LMSP-01: a native stream after a lost connection", () => {
  const deltas = Array.from({ length: 30 }, (_, index) => ({
    text: `data: ${JSON.stringify(chunk({ content: `${index} ` }))}\n\n`,
  }));
  const rest = [chunk({}, "stop"), "[DONE]"].map((data) => ({
    text: `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
  }));
  const text = deltas.map((_delta, index) => `${index} `).join("");
  const inOne = { writes: [{ pause_ms: 500 }, ...deltas, ...rest] };

  /** Reads a stream until this many numbered events have come, then resets its connection; else to its end. */
  async function read(
    path: string,
    count = Number.POSITIVE_INFINITY,
    init: RequestInit = {},
  ): Promise<readonly Json[]> {
    const abort = new AbortController();
    const answered = await fetch(server.url + path, { ...init, signal: abort.signal });
    let seen = "";
    for await (const bytes of answered.body ?? []) {
      seen += Buffer.from(bytes).toString();
      if (numbered(seen).length >= count) break;
    }
    abort.abort();
    return numbered(seen).slice(0, count);
  }
  const numbered = (seen: string): readonly Json[] =>
    seen
      .split("\n\n")
      .slice(0, -1)
      .flatMap((block) => {
        const [, id, data] = /^id: (\d+)$[\s\S]*^data: (.*)$/m.exec(block) ?? [];
        return id === undefined ? [] : [{ id: Number(id), data: JSON.parse(data ?? "{}") }];
      });
  const joined = (events: readonly Json[]): string =>
    events.map(({ data }) => (data.type === "response.output_text.delta" ? data.delta : "")).join("");
  const newest = async (): Promise<string> =>
    JSON.parse((await ask("/lmsp/v1/responses?limit=1", undefined, {})).text).data[0].id;
  const start = post({ model: "m-tiny", input: "Hi", stream: true, store: true });

  it.each([
    ["while the runtime is silent", 1],
    ["within the text", 7],
  ])("goes on where it was cut %s, for two readers at once and after the end", async (_name, count) => {
    answer = inOne;
    const first = await read("/lmsp/v1/responses", count, start);
    const path = `/lmsp/v1/responses/${await newest()}/events?after=${count}`;
    const [one, two] = await Promise.all([read(path), read(path)]);
    const late = await read(path);
    for (const rest of [one, two, late]) {
      const all = [...first, ...rest];
      expect(all.map(({ id }) => id)).toEqual(all.map((_event, index) => index + 1));
      expect(joined(all)).toBe(text);
    }
  });
});

describe("RSP-03: a response is streamed again", () => {
  const words = Array.from({ length: 50 }, (_, index) => `${index} `);
  const writes = [
    ...words.map((content) => ({ text: `data: ${JSON.stringify(chunk({ content }))}\n\n`, pause_ms: 5 })),
    { text: `data: ${JSON.stringify(chunk({}, "stop"))}\n\ndata: [DONE]\n\n` },
  ];
  const eventsIn = (text: string): readonly Json[] => dataOf(text).map((data) => JSON.parse(data));
  const joined = (events: readonly Json[]): string =>
    events.map(({ type, delta }) => (type === "response.output_text.delta" ? delta : "")).join("");

  it("from where its reader left, from the beginning, and past its end", async () => {
    answer = { writes, end: "close" };
    const abort = new AbortController();
    const body = { model: "m-tiny", input: "count to 50", background: true, stream: true };
    const made = await fetch(`${server.url}/v1/responses`, { ...post(body), signal: abort.signal });
    let seen = "";
    for await (const bytes of made.body ?? []) {
      seen += Buffer.from(bytes).toString();
      if (seen.includes('"sequence_number":4,')) break;
    }
    abort.abort();
    const first = eventsIn(seen.slice(0, seen.lastIndexOf("\n\n") + 2)).filter((event) => event.sequence_number <= 4);
    const { id } = first[0]?.response ?? {};
    const again = await ask(`/v1/responses/${id}?stream=true&starting_after=4`, undefined, {});
    expect(eventsIn(again.text)[0]?.sequence_number).toBe(5);
    expect(joined([...first, ...eventsIn(again.text)])).toBe(words.join(""));
    const whole = eventsIn((await ask(`/v1/responses/${id}?stream=true&starting_after=0`, undefined, {})).text);
    expect(whole[0]?.sequence_number).toBe(1);
    expect(whole.at(-1)?.type).toBe("response.completed");
    const past = await ask(`/v1/responses/${id}?stream=true&starting_after=9999`, undefined, {});
    expect(past.status).toBe(200);
    expect(eventsIn(past.text)).toEqual([]);
  });

  it("only when it was made in the background", async () => {
    const { id } = await json("/v1/responses", { model: "m-tiny", input: "Hi" });
    const again = await ask(`/v1/responses/${id}?stream=true&starting_after=4`, undefined, {});
    expect(again.status).toBe(400);
    expect(JSON.parse(again.text).error.type).toBe("invalid_request_error");
  });
});

describe("OLL-01: keep_alive", () => {
  it.each(["-1", -1, "0", 0, "5m", 300, "-1m", null, "1h30m"])("%j is taken", async (keep_alive) => {
    expect((await ask("/api/chat", { ...chat, stream: false, keep_alive })).status).toBe(200);
  });

  it("that is no time is refused", async () => {
    const { status, text } = await ask("/api/chat", { ...chat, stream: false, keep_alive: "banana" });
    expect(status).toBe(400);
    expect(JSON.parse(text).error).toContain("banana");
  });
});
