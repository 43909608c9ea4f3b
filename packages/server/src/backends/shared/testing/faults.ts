/** For tests: everything that a runtime may do wrong on its connection, and what a client must be told of it. */
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { ProblemCode } from "@plenum/core";
import type { Wire } from "./wires.ts";

export interface Asked {
  readonly socket: Socket;
  readonly wire: Wire;
  /** Requests on this connection, this one included. */
  readonly answered: number;
}

export interface Fault {
  readonly name: string;
  /** Model whose requests are answered so. */
  readonly model: string;
  /** What comes of it; `completed`: it is repaired. */
  readonly code: ProblemCode | "completed";
  /** The problem's sentence. */
  readonly detail?: RegExp;
  /** Text that came before, or all of a repaired answer. */
  readonly text?: string;
  readonly retryAfterMs?: number;
  /** Where it is tried; `none`: only by tests of its own. @default everywhere */
  readonly only?: "streams" | "embeddings" | "openai" | "ollama" | "none";
  /** Costs megabytes or seconds: not for thousands of times. */
  readonly isHeavy?: boolean;
  readonly act: (asked: Asked) => void;
}

/** The key that the backends send, and the text that they ask about: neither may stand in a log, the key in no answer. */
export const upstreamKey = "k3y-of-this-runtime";
export const prompt = "canary in the prompt";

type Row = Omit<Fault, "name" | "model" | "code">;

function fault(name: string, code: Fault["code"], row: Row): Fault {
  return { name, model: name.replace(/[^a-z0-9]+/gi, "-").toLowerCase(), code, ...row };
}

function head(status: number, headers: Readonly<Record<string, string | number>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} X\r\n${lines.join("")}\r\n`;
}

function chunk(bytes: string | Buffer): Buffer {
  const length = Buffer.byteLength(bytes).toString(16);
  return Buffer.concat([Buffer.from(`${length}\r\n`), Buffer.from(bytes), Buffer.from("\r\n")]);
}

const lastChunk = "0\r\n\r\n";

/** Begins a chunked answer of status 200 with these pieces. */
function begin({ socket, wire }: Asked, pieces: readonly (string | Buffer)[], headers: object = {}): void {
  const fields = { "Content-Type": wire.type, "Transfer-Encoding": "chunked", ...headers };
  socket.write(head(200, fields));
  for (const piece of pieces) socket.write(chunk(piece));
}

/** A whole answer of status 200. */
function answer(asked: Asked, pieces: readonly (string | Buffer)[], headers: object = {}): void {
  begin(asked, pieces, headers);
  asked.socket.write(lastChunk);
}

/** A whole answer with a counted body. */
function counted({ socket }: Asked, status: number, body: string | Buffer, headers: object = {}): void {
  const fields = { "Content-Length": Buffer.byteLength(body), ...headers };
  socket.write(head(status, fields));
  socket.write(body);
}

function json(asked: Asked, status: number, body: unknown, headers: object = {}): void {
  counted(asked, status, JSON.stringify(body), { "Content-Type": "application/json", ...headers });
}

/** Writes until the peer has had enough. */
function flood(socket: Socket, piece: Buffer, mostBytes: number): void {
  let written = 0;
  const write = (): void => {
    while (!socket.destroyed && written < mostBytes) {
      written += piece.length;
      if (!socket.write(piece)) {
        socket.once("drain", write);
        return;
      }
    }
  };
  write();
}

/** Writes one piece after another, each a read of its own as far as the sockets allow. */
function drip(socket: Socket, piece: string | Buffer, intervalMs: number): void {
  const timer = setInterval(() => socket.write(piece), intervalMs);
  socket.once("close", () => clearInterval(timer));
}

async function eachByItself(socket: Socket, pieces: readonly (string | Buffer)[]): Promise<void> {
  for (const piece of pieces) {
    socket.write(piece);
    await new Promise((done) => setTimeout(done, 3));
  }
}

const good = (wire: Wire): string => wire.word + wire.finish + wire.sentinel;
const megabyte = Buffer.alloc(1024 * 1024, "x");
const echo = `refused Authorization: Bearer ${upstreamKey} for '${prompt}' at http://10.1.2.3:8000/v1`;

const connection: readonly Fault[] = [
  fault("never answers", "backend-error", { detail: /took too long to answer/, act: () => undefined }),
  fault("head never ends", "backend-error", {
    detail: /took too long to answer/,
    act: ({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      drip(socket, "X-More: 1\r\n", 50);
    },
  }),
  fault("head too long", "backend-error", {
    isHeavy: true,
    detail: /too long a head/,
    act: ({ socket }) => socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${"x".repeat(1_000_000)}\r\n\r\n`),
  }),
  fault("head with too many fields", "backend-error", {
    isHeavy: true,
    detail: /too long a head/,
    act: ({ socket }) => socket.write(`HTTP/1.1 200 OK\r\n${"X-Many: 1\r\n".repeat(100_000)}\r\n`),
  }),
  fault("closed without an answer", "backend-error", {
    detail: /closed the connection without an answer/,
    act: ({ socket }) => socket.end(),
  }),
  fault("reset without an answer", "backend-error", {
    detail: /closed the connection without an answer/,
    act: ({ socket }) => socket.resetAndDestroy(),
  }),
  fault("closed within its head", "backend-error", {
    detail: /closed the connection without an answer/,
    act: ({ socket }) => socket.end("HTTP/1.1 200 OK\r\nContent-Ty"),
  }),
  fault("another protocol", "backend-error", {
    detail: /not HTTP/,
    act: ({ socket }) => socket.write("SSH-2.0-OpenSSH_9.2\r\n"),
  }),
  fault("bytes without meaning", "backend-error", {
    detail: /not HTTP/,
    act: ({ socket }) => socket.write(Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 131) % 256))),
  }),
  fault("only an interim answer", "backend-error", {
    act: ({ socket }) => socket.write("HTTP/1.1 100 Continue\r\n\r\n"),
  }),
  fault("another protocol is offered", "backend-error", {
    act: ({ socket }) => socket.write("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
  }),
  fault("closed when it is used again", "completed", {
    only: "none",
    act: (asked) => {
      if (asked.answered > 1) asked.socket.end();
      else answer(asked, [good(asked.wire)]);
    },
  }),
];

const framing: readonly Fault[] = [
  fault("broken chunk size", "backend-error", {
    detail: /not HTTP/,
    act: ({ socket, wire }) =>
      socket.write(`${head(200, { "Content-Type": wire.type, "Transfer-Encoding": "chunked" })}zz\r\n`),
  }),
  fault("chunk size without end", "backend-error", {
    detail: /not HTTP/,
    act: ({ socket, wire }) =>
      socket.write(`${head(200, { "Content-Type": wire.type, "Transfer-Encoding": "chunked" })}${"F".repeat(40)}\r\n`),
  }),
  fault("counted and chunked", "backend-error", {
    act: (asked) => counted(asked, 200, "x", { "Transfer-Encoding": "chunked" }),
  }),
  fault("counts too much", "backend-error", {
    detail: /broke off/,
    act: ({ socket, wire }) => {
      socket.write(head(200, { "Content-Type": wire.type, "Content-Length": 100_000 }));
      socket.end(wire.isEmbedding ? wire.word.slice(0, 10) : wire.word);
    },
  }),
  fault("counts too little", "backend-error", {
    act: ({ socket, wire }) =>
      socket.write(`${head(200, { "Content-Type": wire.type, "Content-Length": 12 })}${good(wire)}`),
  }),
  fault("no content", "backend-error", { act: ({ socket }) => socket.write(head(204)) }),
  fault("empty", "backend-error", { act: (asked) => counted(asked, 200, "", { "Content-Type": asked.wire.type }) }),
  fault("compressed", "backend-error", {
    detail: /compressed its answer/,
    act: (asked) => counted(asked, 200, gzipSync(good(asked.wire)), { "Content-Encoding": "gzip" }),
  }),
  fault("redirect", "backend-error", {
    detail: /points to another address/,
    act: (asked) => counted(asked, 307, "", { Location: "/v1/elsewhere" }),
  }),
  fault("redirect for ever", "backend-error", {
    detail: /points to another address/,
    act: (asked) => counted(asked, 302, "", { Location: "http://192.0.2.1/" }),
  }),
];

const bodies: readonly Fault[] = [
  fault("web page", "backend-error", {
    detail: /web page/,
    act: (asked) => counted(asked, 200, "<!doctype html><p>Welcome", { "Content-Type": "text/html; charset=utf-8" }),
  }),
  fault("JSON is cut", "backend-error", {
    act: (asked) => answer(asked, [asked.wire.event(asked.wire.textJson("one").slice(0, -12))]),
  }),
  fault("no object", "backend-error", { act: (asked) => answer(asked, [asked.wire.event("null")]) }),
  fault("a list", "backend-error", { act: (asked) => answer(asked, [asked.wire.event('[{"a":1}]')]) }),
  fault("bytes that are no text", "backend-error", {
    act: (asked) => answer(asked, [Buffer.alloc(70_000, 0xfe)]),
  }),
  fault("an answer without end", "backend-error", {
    isHeavy: true,
    detail: /longer than|more than/,
    act: (asked) => {
      asked.socket.write(head(200, { "Content-Type": "application/json" }));
      asked.socket.write('{"choices":[{"message":{"content":"');
      flood(asked.socket, megabyte, 400 * megabyte.length);
    },
  }),
  fault("silent behind its head", "backend-error", { detail: /fell silent/, act: (asked) => begin(asked, []) }),
  fault("reset behind its head", "backend-error", {
    detail: /broke off/,
    act: (asked) => {
      begin(asked, []);
      setTimeout(() => asked.socket.resetAndDestroy(), 5);
    },
  }),
  fault("closed behind its head", "backend-error", {
    detail: /broke off/,
    act: (asked) => {
      begin(asked, []);
      asked.socket.end();
    },
  }),
  fault("deeply nested", "backend-error", {
    isHeavy: true,
    act: (asked) => {
      const deep = "[".repeat(100_000) + "]".repeat(100_000);
      const call = `{"index":0,"id":"c","function":{"name":"f","arguments":{"a":${deep}}}}`;
      const openai = `{"choices":[{"index":0,"delta":{"tool_calls":[${call}]}}],"data":${deep}}`;
      const ollama = `{"message":{"tool_calls":[${call}]},"embeddings":${deep}}`;
      answer(asked, [asked.wire.event(asked.wire.api === "openai" ? openai : ollama)]);
    },
  }),
];

const streams: readonly Fault[] = [
  fault("web page without its type", "backend-error", {
    only: "streams",
    act: (asked) => counted(asked, 200, "<html>Welcome", { "Content-Type": "text/plain" }),
  }),
  fault("wrong content type", "completed", {
    text: "one",
    act: (asked) => answer(asked, [good(asked.wire)], { "Content-Type": "text/plain" }),
  }),
  fault("text that is no UTF-8", "completed", {
    only: "streams",
    text: "a\ufffd",
    act: ({ wire, ...asked }) => {
      const [before, after] = wire.event(wire.textJson("a#")).split("#");
      const bytes = Buffer.concat([Buffer.from(before ?? ""), Buffer.from([0xff]), Buffer.from(after ?? "")]);
      answer({ wire, ...asked }, [bytes, wire.finish, wire.sentinel]);
    },
  }),
  fault("event of 10 MB", "backend-error", {
    isHeavy: true,
    only: "streams",
    detail: /more than 4194304 characters/,
    text: "one",
    act: (asked) => answer(asked, [asked.wire.word, asked.wire.event(asked.wire.textJson("x".repeat(10_000_000)))]),
  }),
  fault("line without end", "backend-error", {
    isHeavy: true,
    only: "streams",
    detail: /more than 4194304 characters/,
    act: (asked) => {
      asked.socket.write(head(200, { "Content-Type": asked.wire.type }));
      asked.socket.write(asked.wire.event("").slice(0, 6) || '{"a":"');
      flood(asked.socket, megabyte, 400 * megabyte.length);
    },
  }),
  fault("silent in mid-answer", "backend-error", {
    only: "streams",
    detail: /fell silent/,
    text: "one",
    act: (asked) => begin(asked, [asked.wire.word]),
  }),
  fault("closed in mid-event", "backend-error", {
    only: "streams",
    detail: /broke off/,
    text: "one",
    act: (asked) => {
      begin(asked, [asked.wire.word, asked.wire.word.slice(0, 20)]);
      asked.socket.end();
    },
  }),
  fault("reset in mid-event", "backend-error", {
    only: "streams",
    detail: /broke off/,
    act: (asked) => {
      begin(asked, [asked.wire.word, asked.wire.word.slice(0, 20)]);
      setTimeout(() => asked.socket.resetAndDestroy(), 5);
    },
  }),
  fault("ends before its end", "backend-error", {
    only: "streams",
    detail: /broke off before its end|ended before/,
    text: "one",
    act: (asked) => answer(asked, [asked.wire.word]),
  }),
  fault("keep-alives and nothing else", "backend-error", {
    only: "openai",
    detail: /broke off/,
    act: (asked) =>
      answer(
        asked,
        Array.from({ length: 50 }, () => ": waiting\n\n"),
      ),
  }),
  fault("sentinel and nothing else", "backend-error", {
    only: "openai",
    act: (asked) => answer(asked, [asked.wire.sentinel]),
  }),
  fault("error within the answer", "overloaded", {
    only: "streams",
    detail: /no room/,
    text: "one",
    act: (asked) => answer(asked, [asked.wire.word, asked.wire.event('{"error":{"message":"no room","code":503}}')]),
  }),
  fault("error that quotes key and prompt", "backend-error", {
    only: "streams",
    text: "one",
    act: (asked) => answer(asked, [asked.wire.word, asked.wire.event(JSON.stringify({ error: echo }))]),
  }),
  fault("closed behind its finish", "completed", {
    only: "streams",
    text: "one",
    act: (asked) => {
      begin(asked, [asked.wire.word + asked.wire.finish]);
      asked.socket.end();
    },
  }),
  fault("reset behind its finish", "completed", {
    only: "streams",
    text: "one",
    act: (asked) => {
      begin(asked, [asked.wire.word + asked.wire.finish]);
      setTimeout(() => asked.socket.resetAndDestroy(), 20);
    },
  }),
  fault("open behind its sentinel", "completed", {
    only: "streams",
    text: "one",
    act: (asked) => begin(asked, [good(asked.wire)]),
  }),
  fault("garbage behind its sentinel", "completed", {
    only: "streams",
    text: "one",
    act: (asked) => {
      begin(asked, [good(asked.wire)]);
      drip(asked.socket, chunk("\u0000}{ data: x\n\n"), 10);
    },
  }),
  fault("choices of any kind", "completed", {
    only: "openai",
    text: "one",
    act: (asked) => {
      const odd = ["null", '"x"', '[null,1,"x",{}]', '[{"index":-1}]', '[{"index":1e9,"delta":{"content":"z"}}]'];
      const events = odd.map((choices) => asked.wire.event(`{"choices":${choices},"usage":{"prompt_tokens":-5}}`));
      answer(asked, [...events, good(asked.wire)]);
    },
  }),
  fault("cut over reads", "completed", {
    only: "streams",
    text: "one世界one",
    act: ({ socket, wire }) => {
      const body = Buffer.from(wire.word + wire.event(wire.textJson("世界")) + good(wire));
      const pieces = Array.from({ length: Math.ceil(body.length / 7) }, (_, index) =>
        body.subarray(index * 7, index * 7 + 7),
      );
      const start = head(200, { "Content-Type": wire.type, "Transfer-Encoding": "chunked" });
      void eachByItself(socket, [start, ...pieces.map(chunk), lastChunk]);
    },
  }),
  fault("lines end with CRLF", "completed", {
    only: "streams",
    text: "oneone",
    act: (asked) => answer(asked, [(asked.wire.word + good(asked.wire)).replaceAll("\n", "\r\n")]),
  }),
];

const refusals: readonly Fault[] = [
  fault("error as text", "backend-refused", { detail: /bad thing/, act: (asked) => counted(asked, 400, "bad thing") }),
  fault("error as a member", "backend-refused", {
    detail: /bad thing/,
    act: (asked) => json(asked, 422, { error: "bad thing" }),
  }),
  fault("error as an object", "backend-refused", {
    detail: /bad thing/,
    act: (asked) => json(asked, 409, { error: { message: "bad thing", type: "x", code: 409 } }),
  }),
  fault("error as a list of details", "backend-refused", {
    detail: /bad thing/,
    act: (asked) => json(asked, 422, { detail: [{ loc: ["body"], msg: "bad thing", input: prompt }] }),
  }),
  fault("flat error", "backend-refused", {
    detail: /bad thing/,
    act: (asked) => json(asked, 400, { object: "error", message: "bad thing", code: 40_001 }),
  }),
  fault("error without a body", "backend-error", { detail: /answered 500/, act: (asked) => counted(asked, 500, "") }),
  fault("error as a web page", "backend-error", {
    detail: /answered 502 without/,
    act: (asked) => counted(asked, 502, "<html><h1>Bad gateway</h1>", { "Content-Type": "text/html" }),
  }),
  fault("compressed error", "backend-error", {
    detail: /answered 500 without/,
    act: (asked) => counted(asked, 500, gzipSync("{}"), { "Content-Encoding": "gzip" }),
  }),
  fault("error of bytes", "backend-error", {
    detail: /answered 500 without/,
    act: (asked) => counted(asked, 500, Buffer.alloc(300, 0x9d)),
  }),
  fault("error of 10 MB", "backend-error", {
    isHeavy: true,
    detail: /answered 500 without/,
    act: (asked) => counted(asked, 500, JSON.stringify({ error: { message: "x".repeat(10_000_000) } })),
  }),
  fault("error whose body never ends", "backend-error", {
    detail: /answered 500 without/,
    act: ({ socket }) => {
      socket.write(head(500, { "Content-Type": "text/plain", "Transfer-Encoding": "chunked" }));
      drip(socket, chunk(" "), 30);
    },
  }),
  fault("error that is cut", "backend-error", {
    act: ({ socket }) => socket.end(`${head(500, { "Content-Length": 1_000 })}out of luck`),
  }),
  fault("our key is refused", "backend-error", {
    detail: /does not accept this service's key/,
    act: (asked) => json(asked, 401, { error: { message: echo } }),
  }),
  fault("refusal that quotes key and prompt", "backend-refused", {
    act: (asked) => json(asked, 400, { error: { message: echo } }),
  }),
  fault("too many requests", "overloaded", {
    retryAfterMs: 7_000,
    act: (asked) => json(asked, 429, { error: { message: "slow down" } }, { "Retry-After": "7" }),
  }),
  fault("too many requests until a date", "overloaded", {
    retryAfterMs: 5_000,
    act: (asked) =>
      json(
        asked,
        429,
        { error: "slow down" },
        {
          Date: "Mon, 30 Nov 2026 12:00:00 GMT",
          "Retry-After": "Mon, 30 Nov 2026 12:00:05 GMT",
        },
      ),
  }),
  fault("it is loading", "model-loading", {
    act: (asked) => json(asked, 503, { error: { message: "Loading model", type: "unavailable_error", code: 503 } }),
  }),
  fault("a status beyond the known", "backend-error", { act: (asked) => json(asked, 599, { error: "x" }) }),
];

const vectors: readonly Fault[] = [
  ["no vector", '{"data":[],"embeddings":[]}'],
  ["a vector of words", '{"data":[{"embedding":["a"]}],"embeddings":[["a"]]}'],
  ["an empty vector", '{"data":[{"embedding":[]}],"embeddings":[[]]}'],
  ["a vector of nothing", '{"data":[{"embedding":[null,1]}],"embeddings":[[null,1]]}'],
  ["a vector without bounds", '{"data":[{"embedding":[1e999,1]}],"embeddings":[[1e999,1]]}'],
  ["a vector that is no base64", '{"data":[{"embedding":"AAD"}],"embeddings":["AAD"]}'],
].map(([name = "", body = ""]) =>
  fault(name, "backend-error", { only: "embeddings", act: (asked) => answer(asked, [body]) }),
);
const errorInVectors = fault("an error in place of vectors", "backend-error", {
  only: "embeddings",
  act: (asked) => json(asked, 200, { error: { message: "boom" } }),
});

export const faults: readonly Fault[] = [
  ...connection,
  ...framing,
  ...bodies,
  ...streams,
  ...refusals,
  ...vectors,
  errorInVectors,
];

/** The faults that answers of this kind can have. */
export function faultsOf(api: Wire["api"], kind: "streams" | "embeddings"): readonly Fault[] {
  return faults.filter(({ only }) => only === undefined || only === kind || (only === api && kind === "streams"));
}

/** Answers that go on until their connection is closed. */
export const endlessAnswers: readonly Fault[] = [
  fault("endless silence", "cancelled", { act: () => undefined }),
  fault("endless head", "cancelled", { act: ({ socket }) => socket.write("HTTP/1.1 200 OK\r\nX-More: 1\r\n") }),
  fault("endless wait", "cancelled", { act: (asked) => begin(asked, []) }),
  fault("endless stream", "cancelled", {
    act: (asked) => {
      begin(asked, [asked.wire.word]);
      drip(asked.socket, chunk(asked.wire.word), 5);
    },
  }),
];
