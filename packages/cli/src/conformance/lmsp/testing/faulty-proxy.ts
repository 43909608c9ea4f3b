import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What is asked of the service behind the proxy. */
export interface Asked {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** How a service goes wrong: it is a right one behind a proxy that changes what passes. */
export interface Fault {
  readonly name: string;
  /** Cases that must notice it, by the beginning of their ids. */
  readonly caughtBy: string;
  /** Changes a request before the service sees it. */
  readonly ask?: (asked: Asked) => Asked;
  /** Changes an answer that is no event stream. */
  readonly answer?: (answered: Answered, asked: Asked) => Answered;
  /** Changes a block of an event stream; of its answer's headers see `head`. */
  readonly block?: (block: string, asked: Asked) => readonly string[];
  readonly head?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders;
}

export interface FaultyProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** Stands before a service and makes it go wrong. */
export async function startFaultyProxy(target: string, fault: Fault): Promise<FaultyProxy> {
  const server = createServer((incoming, outgoing) => {
    void readBody(incoming).then((body) => {
      const asked = { method: incoming.method ?? "GET", path: incoming.url ?? "/", headers: incoming.headers, body };
      forward(target, fault, fault.ask?.(asked) ?? asked, outgoing);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readBody(stream: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text;
}

function forward(target: string, fault: Fault, asked: Asked, outgoing: ServerResponse): void {
  const headers = { ...asked.headers, "content-length": String(Buffer.byteLength(asked.body)) };
  if (asked.body === "") Reflect.deleteProperty(headers, "content-length");
  const sent = request(`${target}${asked.path}`, { method: asked.method, headers }, (incoming) => {
    const isStream = incoming.headers["content-type"]?.startsWith("text/event-stream") ?? false;
    if (isStream) passStream(fault, asked, incoming, outgoing);
    else void passWhole(fault, asked, incoming, outgoing);
  });
  outgoing.on("close", () => sent.destroy());
  sent.on("error", () => outgoing.destroy());
  sent.end(asked.body);
}

async function passWhole(fault: Fault, asked: Asked, incoming: IncomingMessage, outgoing: ServerResponse) {
  const body = await readBody(incoming).catch(() => "");
  const answered = { status: incoming.statusCode ?? 500, headers: incoming.headers, body };
  const changed = fault.answer?.(answered, asked) ?? answered;
  const { "content-length": _length, "transfer-encoding": _encoding, ...headers } = changed.headers;
  outgoing.writeHead(changed.status, headers);
  outgoing.end(changed.status === 204 || changed.status === 304 ? undefined : changed.body);
}

function passStream(fault: Fault, asked: Asked, incoming: IncomingMessage, outgoing: ServerResponse): void {
  outgoing.writeHead(incoming.statusCode ?? 200, fault.head?.(incoming.headers) ?? incoming.headers);
  let rest = "";
  incoming.setEncoding("utf8").on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n\n");
    rest = parts.pop() ?? "";
    for (const block of parts) {
      for (const each of fault.block?.(block, asked) ?? [block]) outgoing.write(`${each}\n\n`);
    }
  });
  incoming.on("end", () => outgoing.end());
  incoming.on("error", () => outgoing.destroy());
}
