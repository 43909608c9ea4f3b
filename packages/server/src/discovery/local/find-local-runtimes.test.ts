import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { findLocalRuntimes } from "./index.ts";

type Answers = Readonly<Record<string, unknown>>;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** A server that answers these paths, JSON unless the answer is text, and 404 elsewhere. */
async function serve(answers: Answers, headers: Readonly<Record<string, string>> = {}) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const answer = answers[request.url ?? ""];
    const text = typeof answer === "string" ? answer : JSON.stringify(answer ?? { error: "not found" });
    response.writeHead(answer === undefined ? 404 : 200, headers).end(text);
  });
  return { asked, port: await listen(server) };
}

async function listen(server: Server | ReturnType<typeof createTcpServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(() => resolve())));
  const address = server.address() as AddressInfo;
  return address.port;
}

const list = (owner?: string) => ({
  object: "list",
  data: [{ id: "m", object: "model", ...(owner === undefined ? {} : { owned_by: owner }) }],
});
const ollama = { "/": "Ollama is running", "/api/version": { version: "0.17.4" }, "/v1/models": list("library") };

describe("tells by answers what runs", () => {
  test.each<[string, Answers, Record<string, string>, string | undefined]>([
    ["Ollama", ollama, {}, "ollama"],
    ["Ollama without a model", { ...ollama, "/v1/models": { object: "list", data: null } }, {}, "ollama"],
    ["llama-server", { "/v1/models": list("llamacpp") }, { server: "llama.cpp" }, "llama-server"],
    ["llama-server that loads its model", {}, { server: "llama.cpp" }, "llama-server"],
    ["vLLM", { "/v1/models": list("vllm") }, { server: "uvicorn" }, "vllm"],
    ["LM Studio", { "/v1/models": list("organization_owner"), "/api/v0/models": list() }, {}, "lm-studio"],
    ["Jan", { "/v1/models": list(), "/openapi.json": { info: { title: "Jan API" } } }, {}, "jan"],
    ["another server of this API", { "/v1/models": list("me") }, {}, "openai-compatible"],
    ["another Plenum", { ...ollama, "/.well-known/lmsp": { lmsp_version: "1.0" } }, {}, undefined],
    ["a web page", { "/": "<html>", "/v1/models": "<html>" }, {}, undefined],
    ["a page for every path", { "/.well-known/lmsp": "<html>", "/v1/models": "<html>" }, {}, undefined],
    ["JSON of another kind", { "/v1/models": { data: [1] } }, {}, undefined],
    ["nothing known", {}, {}, undefined],
  ])("%s", async (_name, answers, headers, kind) => {
    const { port } = await serve(answers, headers);
    const found = await findLocalRuntimes({ own: [], ports: [port], timeoutMs: 5_000 });
    const baseUrl = `http://127.0.0.1:${port}`;
    expect(found).toEqual(kind === undefined ? [] : [{ kind, baseUrl, name: `${kind}-${port}` }]);
  });

  test("a program that is no model server is asked twice and no more", async () => {
    const { port, asked } = await serve({ "/": "a development server" });
    await findLocalRuntimes({ own: [], ports: [port], timeoutMs: 5_000 });
    expect(asked).toEqual(["GET /.well-known/lmsp", "GET /v1/models"]);
  });

  test("one that wants a key is not found", async () => {
    const server = createServer((_request, response) => response.writeHead(401).end('{"error":"unauthorized"}'));
    const port = await listen(server);
    expect(await findLocalRuntimes({ own: [], ports: [port], timeoutMs: 5_000 })).toEqual([]);
  });

  test("a redirect is not followed", async () => {
    const other = await serve(ollama);
    const server = createServer((request, response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${other.port}${request.url}` }).end(),
    );
    const port = await listen(server);
    expect(await findLocalRuntimes({ own: [], ports: [port], timeoutMs: 5_000 })).toEqual([]);
    expect(other.asked).toEqual([]);
  });
});

test.each([
  ["base URL", (port: number) => `http://127.0.0.1:${port}`],
  ["localhost with a path", (port: number) => `http://localhost:${port}/v1`],
  ["host and port", (port: number) => `0.0.0.0:${port}`],
  ["IPv6", (port: number) => `http://[::1]:${port}`],
])("our own listener is never asked: %s", async (_name, own) => {
  const { port, asked } = await serve(ollama);
  expect(await findLocalRuntimes({ own: [own(port)], ports: [port] })).toEqual([]);
  expect(asked).toEqual([]);
});

test("the same port on another machine is not ours", async () => {
  const { port } = await serve(ollama);
  const own = [`http://192.0.2.1:${port}`];
  expect(await findLocalRuntimes({ own, ports: [port], timeoutMs: 5_000 })).toHaveLength(1);
});

test("found ones stand in the order of kinds, then of ports", async () => {
  const vllm = await serve({ "/v1/models": list("vllm") });
  const first = await serve(ollama);
  const second = await serve(ollama);
  const ports = [vllm.port, first.port, second.port];
  const found = await findLocalRuntimes({ own: [], ports, timeoutMs: 5_000 });
  expect(found.map(({ kind }) => kind)).toEqual(["ollama", "ollama", "vllm"]);
  expect(found.map(({ baseUrl }) => Number(new URL(baseUrl).port))).toEqual([first.port, second.port, vllm.port]);
});

describe("its time is bounded", () => {
  test.each([
    ["silence after the connection", () => createTcpServer(() => {})],
    ["garbage", () => createTcpServer((socket) => socket.end("SSH-2.0-nothing\r\n"))],
    ["a reset", () => createTcpServer((socket) => socket.resetAndDestroy())],
    ["a body without an end", () => createTcpServer((socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nx"))],
    [
      "an endless flood",
      () =>
        createTcpServer((socket) => {
          socket.on("error", () => {});
          socket.write(`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(2_000_000)}`);
        }),
    ],
  ])("%s", async (name, create) => {
    const server = create();
    const sockets = new Set<{ destroy(): void }>();
    server.on("connection", (socket) => {
      socket.on("error", () => {});
      sockets.add(socket);
    });
    const port = await listen(server);
    const before = performance.now();
    expect(await findLocalRuntimes({ own: [], ports: [port], timeoutMs: 200 })).toEqual([]);
    process.stdout.write(`${name}: given up after ${Math.round(performance.now() - before)} ms\n`);
    for (const socket of sockets) socket.destroy();
  });

  test("nothing listens", async () => {
    const { port } = await serve({});
    for (const close of closers.splice(0)) await close();
    expect(await findLocalRuntimes({ own: [], ports: [port] })).toEqual([]);
  });
});
