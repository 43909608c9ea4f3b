import { createServer, type Server, type Socket } from "node:net";
import { CoreError } from "@plenum/core";
import { afterEach, describe, expect, it } from "vitest";
import { Upstream, type UpstreamReader } from "./upstream.ts";

const never = new AbortController().signal;
const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server that does this with every connection once its request is there. */
async function serve(onRequest: (socket: Socket, request: string) => void): Promise<{ url: string; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let seen = "";
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk) => {
      seen += chunk.toString();
      if (/\r\n\r\n$/.test(seen) || /\r\n\r\n.*\}$/s.test(seen)) {
        onRequest(socket, seen);
        seen = "";
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("no port");
  return { url: `http://127.0.0.1:${address.port}`, server };
}

function upstreamAt(url: string, options: Partial<ConstructorParameters<typeof Upstream>[0]> = {}): Upstream {
  const upstream = new Upstream({ baseUrl: url, ...options });
  closers.push(() => upstream.close());
  return upstream;
}

function collecting(): UpstreamReader & { text: string; status: number } {
  return {
    text: "",
    status: 0,
    onHead(status) {
      this.status = status;
    },
    onData(chunk) {
      this.text += new TextDecoder().decode(chunk);
    },
    onRefused,
  };
}

const onRefused = () => new Error("refused");

const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

describe("Upstream", () => {
  it("sends JSON and its headers below the base path, and parses the answer", async () => {
    let seen = "";
    const { url } = await serve((socket, request) => {
      seen = request;
      socket.write('HTTP/1.1 201 Created\r\nX-One: 1\r\nContent-Length: 8\r\n\r\n{"a": 1}');
    });
    const upstream = upstreamAt(`${url}/base/`, { headers: { authorization: "Bearer test-only" } });
    const answer = await upstream.json({ method: "POST", path: "/v1/x", body: { b: "ü" }, signal: never });
    expect(answer).toMatchObject({ status: 201, body: { a: 1 }, text: '{"a": 1}' });
    expect(answer.headers["x-one"]).toBe("1");
    expect(seen).toMatch(/^POST \/base\/v1\/x HTTP/);
    expect(seen.toLowerCase()).toContain("authorization: bearer test-only");
    expect(seen).toContain('{"b":"ü"}');
  });

  it("gives every read as it comes and resolves at the clean end", async () => {
    const { url } = await serve((socket) => {
      socket.write(`${chunkedHead}3\r\none\r\n`);
      setTimeout(() => socket.write("3\r\ntwo\r\n0\r\n\r\n"), 20);
    });
    const reader = collecting();
    await upstreamAt(url).stream({ method: "GET", path: "/", signal: never }, reader);
    expect(reader).toMatchObject({ status: 200, text: "onetwo" });
  });

  it.each([
    ["no server", "refuse", "backend-unavailable"],
    ["closed without an answer", "", "backend-error"],
    ["cut in a chunked body", `${chunkedHead}5\r\nab`, "backend-error"],
    ["cut in a counted body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab", "backend-error"],
    ["no HTTP", "\u0000\u0001garbage\r\n\r\n", "backend-error"],
  ])("%s: a problem by code", async (_name, answer, code) => {
    const { url } = await serve((socket) => socket.end(answer));
    const upstream = upstreamAt(answer === "refuse" ? "http://127.0.0.1:1" : url);
    const failure = await upstream
      .stream({ method: "POST", path: "/", body: {}, signal: never }, collecting())
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(CoreError);
    expect(failure).toMatchObject({ code });
    if (failure instanceof CoreError) expect(failure.detail).not.toMatch(/127\.0\.0\.1|UND_ERR/);
  });

  it("falls silent: backend-error within the stated time", async () => {
    const { url } = await serve((socket) => socket.write(`${chunkedHead}3\r\none\r\n`));
    const upstream = upstreamAt(url, { silenceTimeoutMs: 100 });
    const running = upstream.stream({ method: "GET", path: "/", signal: never }, collecting());
    await expect(running).rejects.toMatchObject({ code: "backend-error" });
  });

  it("abort closes the connection at once and rejects with the reason", async () => {
    const reason = new Error("stop");
    const abort = new AbortController();
    let closed = 0;
    const gone = new Promise<void>((resolve) => {
      void serve((socket) => {
        socket.write(`${chunkedHead}3\r\none\r\n`);
        socket.on("close", () => {
          closed = performance.now();
          resolve();
        });
      }).then(({ url }) => {
        const running = upstreamAt(url).stream(
          { method: "GET", path: "/", signal: abort.signal },
          { onHead: () => true, onData: () => setTimeout(() => abort.abort(reason), 10), onRefused },
        );
        return expect(running).rejects.toBe(reason);
      });
    });
    let at = 0;
    abort.signal.addEventListener("abort", () => {
      at = performance.now();
    });
    await gone;
    process.stdout.write(`abort to closed upstream socket: ${(closed - at).toFixed(1)} ms\n`);
  });

  it("sends nothing when it is aborted before", async () => {
    const reason = new Error("before");
    const call = { method: "GET", path: "/", signal: AbortSignal.abort(reason) } as const;
    await expect(upstreamAt("http://127.0.0.1:1").stream(call, collecting())).rejects.toBe(reason);
  });

  it("reads a refused body whole, and gives it to onRefused", async () => {
    const { url } = await serve((socket) => socket.write("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"));
    const reader: UpstreamReader = {
      onHead: () => false,
      onData: () => expect.unreachable(),
      onRefused: ({ status, text }) => new Error(`${status} ${text}`),
    };
    await expect(upstreamAt(url).stream({ method: "GET", path: "/", signal: never }, reader)).rejects.toThrow(
      "404 gone",
    );
  });

  it("rejects with what the reader throws, and closes the connection", async () => {
    let closed: () => void = () => undefined;
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const { url } = await serve((socket) => {
      socket.on("close", closed);
      socket.write(`${chunkedHead}3\r\none\r\n`);
    });
    const reader: UpstreamReader = {
      onHead: () => true,
      onData: () => {
        throw new Error("too much");
      },
      onRefused,
    };
    await expect(upstreamAt(url).stream({ method: "GET", path: "/", signal: never }, reader)).rejects.toThrow(
      "too much",
    );
    await gone;
  });

  it("close ends running calls", async () => {
    const { url } = await serve((socket) => socket.write(`${chunkedHead}3\r\none\r\n`));
    const upstream = upstreamAt(url);
    const running = upstream.stream(
      { method: "GET", path: "/", signal: never },
      { onHead: () => true, onData: () => void upstream.close(), onRefused },
    );
    await expect(running).rejects.toMatchObject({ code: "backend-error" });
  });

  it("refuses an answer that is too long", async () => {
    const { url } = await serve((socket) =>
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n${"x".repeat(20)}`),
    );
    const call = { method: "GET", path: "/", signal: never } as const;
    const upstream = upstreamAt(url);
    expect((await upstream.json(call, 20)).text).toHaveLength(20);
    await expect(upstream.json(call, 19)).rejects.toMatchObject({ code: "backend-error", details: { limit: 19 } });
  });
});
