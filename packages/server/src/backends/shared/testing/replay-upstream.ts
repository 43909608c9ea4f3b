/** For tests: an upstream on a raw socket that answers as told, write by write, and can cut or reset its answers. */
import { createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A step of a body: a write of its own, or a pause. The form of the case files. */
export type ReplayWrite =
  | { readonly text: string }
  | { readonly hex: string }
  | { readonly pause_ms: number }
  | {
      readonly repeat_text: {
        readonly prefix: string;
        readonly unit: string;
        readonly count: number;
        readonly suffix: string;
      };
    };

export interface ReplayAnswer {
  /** @default 200 */
  readonly status?: number;
  /** @default "text/event-stream" */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly writes: Iterable<ReplayWrite>;
  /** `close`: the body ends cleanly; `cut`: the connection ends in the body; `open`: nothing follows. @default "close" */
  readonly end?: "close" | "reset" | "cut" | "open";
}

export interface ReplayRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: string;
  /** Parsed JSON; undefined when there was none. */
  readonly body: unknown;
}

export interface ReplayUpstream {
  readonly url: string;
  readonly requests: readonly ReplayRequest[];
  /** Connections that are open now. */
  readonly connections: number;
  /** Resolves with `performance.now()` when a connection on which an answer was running was closed by the peer. */
  closedByPeer(): Promise<number>;
  close(): Promise<void>;
}

/** Milliseconds between writes, so that each is a read of its own. */
const betweenWritesMs = 20;

/** @param port to listen on again after a close. @default any */
export async function startReplayUpstream(
  answer: (request: ReplayRequest) => ReplayAnswer,
  port = 0,
): Promise<ReplayUpstream> {
  const requests: ReplayRequest[] = [];
  const sockets = new Set<Socket>();
  const waiting = new Set<(at: number) => void>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    const connection = new Connection(socket, (request) => {
      requests.push(request);
      return answer(request);
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      if (!connection.isAnswering) return;
      for (const tell of waiting) tell(performance.now());
      waiting.clear();
    });
    socket.on("data", (chunk: Buffer) => connection.take(chunk));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    get connections() {
      return sockets.size;
    },
    closedByPeer: () => new Promise((resolve) => waiting.add(resolve)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

class Connection {
  isAnswering = false;
  readonly #socket: Socket;
  readonly #answer: (request: ReplayRequest) => ReplayAnswer;
  #seen = Buffer.alloc(0);

  constructor(socket: Socket, answer: (request: ReplayRequest) => ReplayAnswer) {
    this.#socket = socket;
    this.#answer = answer;
  }

  take(chunk: Buffer): void {
    this.#seen = Buffer.concat([this.#seen, chunk]);
    const headEnd = this.#seen.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#seen.toString("latin1", 0, headEnd);
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const end = headEnd + 4 + length;
    if (this.#seen.length < end) return;
    const text = this.#seen.toString("utf8", headEnd + 4, end);
    this.#seen = this.#seen.subarray(end);
    const [method = "", path = ""] = head.split(" ");
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    void this.#write(this.#answer({ method, path, headers: head, body }));
  }

  async #write(answer: ReplayAnswer): Promise<void> {
    const { status = 200, contentType = "text/event-stream", headers = {}, writes, end = "close" } = answer;
    const socket = this.#socket;
    this.isAnswering = true;
    const fields = { "Content-Type": contentType, "Transfer-Encoding": "chunked", ...headers };
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} Replay\r\n${lines.join("")}\r\n`);
    for (const write of writes) {
      await sleep("pause_ms" in write ? write.pause_ms : betweenWritesMs);
      if (socket.destroyed) return;
      const bytes = bytesOf(write);
      if (bytes.length === 0) continue;
      socket.write(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]));
    }
    await sleep(betweenWritesMs);
    if (end === "open" || socket.destroyed) return;
    this.isAnswering = false;
    if (end === "close") socket.write("0\r\n\r\n");
    else if (end === "reset") socket.resetAndDestroy();
    else socket.destroy();
  }
}

function bytesOf(write: ReplayWrite): Buffer {
  if ("text" in write) return Buffer.from(write.text);
  if ("hex" in write) return Buffer.from(write.hex, "hex");
  if ("pause_ms" in write) return Buffer.alloc(0);
  const { prefix, unit, count, suffix } = write.repeat_text;
  return Buffer.from(prefix + unit.repeat(count) + suffix);
}

/** A whole JSON answer. */
export function jsonAnswer(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): ReplayAnswer {
  return { status, contentType: "application/json", headers, writes: [{ text: JSON.stringify(body) }] };
}
