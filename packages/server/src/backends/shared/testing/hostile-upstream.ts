/** For tests: a server on a raw socket that has one model for each fault. */
import { createServer, type Server, type Socket } from "node:net";
import { type Fault, faults } from "./faults.ts";
import { wires } from "./wires.ts";

export interface HostileUpstream {
  readonly port: number;
  readonly url: string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Requests for an answer that came so far. */
  readonly asked: number;
  close(): Promise<void>;
}

/** @param all rows to serve. @default every fault @param port @default any */
export async function startHostileUpstream(all: readonly Fault[] = faults, port = 0): Promise<HostileUpstream> {
  const byModel = new Map(all.map((fault) => [fault.model, fault]));
  const sockets = new Set<Socket>();
  let asked = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    let answered = 0;
    readRequests(socket, ({ path, body }) => {
      const listed = listAnswer(path, body, [...byModel.keys()]);
      if (listed !== undefined) {
        writeJson(socket, listed);
        return;
      }
      const wire = wires[path];
      const fault = byModel.get(modelOf(body));
      if (wire === undefined || fault === undefined) {
        writeJson(socket, { error: "unknown" }, 404);
        return;
      }
      asked += 1;
      answered += 1;
      fault.act({ socket, wire, answered });
    });
  });
  const listening = await listen(server, port);
  return {
    port: listening,
    url: `http://127.0.0.1:${listening}`,
    get connections() {
      return sockets.size;
    },
    get asked() {
      return asked;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", 4_096, resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  return address.port;
}

interface Request {
  readonly path: string;
  readonly body: unknown;
}

function readRequests(socket: Socket, onRequest: (request: Request) => void): void {
  let seen = Buffer.alloc(0);
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
