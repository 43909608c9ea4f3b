/** For tests: a server on a raw socket that has one model for each fault. */
import { createServer, type Server, type Socket } from "node:net";
import { endlessAnswers, faults } from "./faults.ts";
import { wires } from "./wires.ts";

export interface HostileUpstream {
  readonly url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Endless answers that run now. */
  readonly running: number;
  close(): Promise<void>;
}

export interface HostileUpstreamOptions {
  /** Told when an endless answer begins. */
  readonly onBegin?: () => void;
  /** Told when the connection of an endless answer is closed. */
  readonly onClosed?: () => void;
}

/** Serves every fault and every endless answer. */
export async function startHostileUpstream(options: HostileUpstreamOptions = {}): Promise<HostileUpstream> {
  const byModel = new Map([...faults, ...endlessAnswers].map((fault) => [fault.model, fault]));
  // Some backends tell by the name what a model is for.
  const models = [...byModel.keys()].flatMap((name) => [name, `embed-${name}`]);
  const sockets = new Set<Socket>();
  const endless = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      if (endless.delete(socket)) options.onClosed?.();
    });
    let answered = 0;
    readRequests(socket, ({ path, body }) => {
      const listed = listAnswer(path, body, models);
      if (listed !== undefined) {
        writeJson(socket, listed);
        return;
      }
      const wire = wires[path];
      const fault = byModel.get(modelOf(body).replace(/^embed-/, ""));
      if (wire === undefined || fault === undefined) {
        writeJson(socket, { error: "unknown" }, 404);
        return;
      }
      answered += 1;
      fault.act({ socket, wire, answered });
      if (!endlessAnswers.includes(fault)) return;
      endless.add(socket);
      options.onBegin?.();
    });
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    get connections() {
      return sockets.size;
    },
    get running() {
      return endless.size;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 4_096, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  return address.port;
}

interface Request {
  readonly path: string;
  readonly body: unknown;
}

function readRequests(socket: Socket, onRequest: (request: Request) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const headEnd = seen.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = seen.toString("latin1", 0, headEnd);
    const end = headEnd + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    if (seen.length < end) return;
    const text = seen.toString("utf8", headEnd + 4, end);
    seen = seen.subarray(end);
    onRequest({ path: head.split(" ")[1] ?? "", body: text === "" ? undefined : JSON.parse(text) });
  });
}

function modelOf(body: unknown): string {
  return typeof body === "object" && body !== null && "model" in body ? String(body.model) : "";
}

/** Both APIs' lists, healthy: only answers are broken. */
function listAnswer(path: string, body: unknown, models: readonly string[]): object | undefined {
  if (path === "/v1/embeddings" && modelOf(body) === "") return { data: [] };
  switch (path) {
    case "/v1/models":
      return { object: "list", data: models.map((id) => ({ id })) };
    case "/api/tags":
      return { models: models.map((name) => ({ name, model: name, digest: name, size: 1, details: {} })) };
    case "/api/ps":
      return { models: models.map((name) => ({ name, model: name, context_length: 4_096 })) };
    case "/api/version":
      return { version: "0.17.4" };
    case "/api/show":
      return { capabilities: ["completion", "embedding"], details: {}, model_info: {} };
    default:
      return undefined;
  }
}

function writeJson(socket: Socket, body: object, status = 200): void {
  const text = JSON.stringify(body);
  const head = `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}`;
  socket.write(`${head}\r\n\r\n${text}`);
}
