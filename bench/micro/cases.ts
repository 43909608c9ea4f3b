import { createHash, randomUUID } from "node:crypto";
import {
  Authenticator,
  type BackendEvent,
  createMemoryStorage,
  type LogEntry,
  MemoryBus,
  MemoryEventLog,
  type Response,
  type ResponseEvent,
  type ResponseRequest,
  randomIds,
  requestDefaults,
  systemClock,
} from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testCaller } from "@plenum/core/testing";
import { createParser } from "eventsource-parser";
import { AnswerReader } from "../../packages/server/src/backends/openai-compatible/stream.ts";
import { NdjsonReader } from "../../packages/server/src/backends/shared/ndjson-reader.ts";
import { SseReader } from "../../packages/server/src/backends/shared/sse-reader.ts";
import { createRenderer as createLmspRenderer } from "../../packages/server/src/doors/lmsp/stream.ts";
import { chatShape } from "../../packages/server/src/doors/ollama/answer-shape.ts";
import { createRenderer as createOllamaRenderer } from "../../packages/server/src/doors/ollama/stream.ts";
import { createOpenaiDoor } from "../../packages/server/src/doors/openai/index.ts";
import { sseRenderer } from "../../packages/server/src/doors/openai/stream.ts";
import { chatSchema } from "../../packages/server/src/doors/shared/openai/chat/schema.ts";
import { ChatStream } from "../../packages/server/src/doors/shared/openai/chat/stream.ts";
import { parseBody } from "../../packages/server/src/doors/shared/parse-body.ts";
import { callDoor } from "../../packages/server/src/doors/shared/testing/call-door.ts";

export interface MicroCase {
  readonly name: string;
  readonly ours: () => unknown;
  /** The least that could do the same, or what others use for it. */
  readonly rival: () => unknown;
  readonly rivalName: string;
  /** Tokens, or requests, of one call. */
  readonly units: number;
}

const tokens = 64;
const texts = Array.from({ length: tokens }, (_, at) => ` token${at}`);
const chunkOf = (content: string): string =>
  JSON.stringify({
    id: "chatcmpl-0123456789",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "m",
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
  });
const chunks = texts.map(chunkOf);
const sse = Buffer.from(chunks.map((chunk) => `data: ${chunk}\n\n`).join(""));
const ndjson = Buffer.from(chunks.map((chunk) => `${chunk}\n`).join(""));

const response: Response = {
  id: "resp_0123456789",
  status: "queued",
  model: "m",
  door: "openai",
  output: [],
  finishes: [],
  timings: {},
  attempt: 1,
  priority: 0,
  createdAt: 1_700_000_000_000,
  metadata: {},
};
const item = {
  type: "message",
  id: "msg_0",
  candidate: 0,
  index: 0,
  status: "in_progress",
  text: "",
  refusal: "",
  logprobs: [],
} as const;
const events: readonly ResponseEvent[] = [
  { type: "response.created", atMs: 0, response },
  { type: "response.output_item.added", atMs: 1, item },
  ...texts.map((delta, at): ResponseEvent => {
    return { type: "response.output_text.delta", atMs: at, itemId: "msg_0", index: 0, delta };
  }),
];
const entries = (): LogEntry[] => events.map((event, at) => ({ sequence: at + 1, event }));
const written = texts.map((delta) => JSON.parse(chunkOf(delta)));

const chatBody = Buffer.from(
  JSON.stringify({
    model: "m",
    messages: [{ role: "user", content: "x".repeat(1_000) }],
    temperature: 0.5,
    stream: true,
  }),
);

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const authenticator = new Authenticator({
  fixed: [{ id: "config-1", principal: "p", sha256: sha256("token"), scopes: ["infer"], createdAt: 0 }],
  store: createMemoryStorage({ bytesPerResponse: 1, bytesTotal: 1 }).tokens,
  mayBeOpen: false,
  sha256,
  clock: systemClock,
  bus: new MemoryBus(),
  onFault: undefined,
});

const backend = new ScriptedBackend("scripted", [scriptedModel("m", { limits: { parallel: 64 } })]);
const batch: readonly BackendEvent[] = texts.map((delta) => ({ type: "text", candidate: 0, delta }));
const usage = { inputTokens: 8, outputTokens: tokens, cachedInputTokens: 0, reasoningTokens: 0 };
backend.answer = async function* () {
  backend.requests.length = 0;
  yield [{ type: "accepted", inputTokens: 8 }, ...batch];
  yield [
    { type: "finish", candidate: 0, finishReason: "stop" },
    { type: "usage", usage },
  ];
};
const core = createTestCore({ backends: [backend], limits: { textRetentionMs: 200 } });
const door = createOpenaiDoor();
const whole = { model: "m", messages: [{ role: "user", content: "x".repeat(1_000) }] };
const backendRequest: ResponseRequest = {
  ...requestDefaults,
  model: "m",
  input: { kind: "items", items: [{ type: "message", role: "user", content: [{ type: "text", text: "Hi" }] }] },
};

function renderAll(render: (entry: LogEntry) => string): number {
  let length = 0;
  for (const entry of entries()) length += render(entry).length;
  return length;
}

function stringifyAll(): number {
  let length = 0;
  for (const chunk of written) length += `data: ${JSON.stringify(chunk)}\n\n`.length;
  return length;
}

export const cases: readonly MicroCase[] = [
  {
    name: "sse-reader: bytes to events",
    ours: () => new SseReader(() => {}).push(sse),
    rival: () => createParser({ onEvent: () => {} }).feed(new TextDecoder().decode(sse)),
    rivalName: "eventsource-parser",
    units: tokens,
  },
  {
    name: "ndjson-reader: bytes to objects",
    ours: () => new NdjsonReader(() => {}).push(ndjson),
    rival: () =>
      ndjson
        .toString()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    rivalName: "split and JSON.parse",
    units: tokens,
  },
  {
    name: "answer-reader: bytes to core events",
    ours: () => new AnswerReader(backendRequest, () => {}).push(sse),
    rival: () => chunks.map((chunk) => JSON.parse(chunk)),
    rivalName: "JSON.parse of each chunk",
    units: tokens,
  },
  {
    name: "event log: append and read",
    ours() {
      const log = new MemoryEventLog({ bytesPerResponse: 1e7, bytesTotal: 1e8 });
      log.open("a", 1);
      const reader = log.read("a", { after: 0 });
      log.append("a", 1, 0, events);
      return reader.take().length;
    },
    rival: () => JSON.stringify(events).length,
    rivalName: "JSON.stringify of the events",
    units: tokens,
  },
  {
    name: "openai renderer: log to chunks",
    ours() {
      const param = (path: string): string => path;
      const toWireError = () => ({ message: "", type: "", param: null, code: null });
      const source = new ChatStream({ includeUsage: false, param, toWireError });
      return renderAll(sseRenderer(source, { headers: {}, endsWithDone: true }).render);
    },
    rival: stringifyAll,
    rivalName: "JSON.stringify of each chunk",
    units: tokens,
  },
  {
    name: "ollama renderer: log to lines",
    ours: () =>
      renderAll(createOllamaRenderer({ shape: chatShape, model: "m", path: "/api/chat", headers: {} }).render),
    rival: stringifyAll,
    rivalName: "JSON.stringify of each chunk",
    units: tokens,
  },
  {
    name: "lmsp renderer: log to events",
    ours: () => renderAll(createLmspRenderer({}).render),
    rival: stringifyAll,
    rivalName: "JSON.stringify of each chunk",
    units: tokens,
  },
  {
    name: "body: bytes to a checked chat",
    ours: () => parseBody(chatBody, chatSchema),
    rival: () => JSON.parse(chatBody.toString()),
    rivalName: "JSON.parse",
    units: 1,
  },
  {
    name: "id",
    ours: () => randomIds.unique(),
    rival: () => randomUUID(),
    rivalName: "randomUUID",
    units: 1,
  },
  {
    name: "token: from header to caller",
    ours: () => authenticator.authenticate("token", "127.0.0.1"),
    rival: () => sha256("token"),
    rivalName: "one SHA-256",
    units: 1,
  },
  {
    name: "core: a response from request to end",
    async ours() {
      const owned = await core.responses.create(backendRequest, testCaller, "openai");
      return owned.done;
    },
    rival: () => structuredClone(batch),
    rivalName: "structuredClone of its events",
    units: 1,
  },
  {
    name: "door and core: a whole chat",
    ours: () => callDoor(door, core, { method: "POST", path: "/v1/chat/completions", body: whole }),
    rival: () => structuredClone(batch),
    rivalName: "structuredClone of its events",
    units: 1,
  },
];
