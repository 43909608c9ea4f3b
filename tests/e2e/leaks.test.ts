import { mkdtemp, rm } from "node:fs/promises";
import { type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { measured, waitFor } from "./service.ts";

/** Ten thousand connects, aborts and errors on a whole service whose runtime answers at once or never. */
const rounds = 10_000;
const atOnce = 50;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

let server: PlenumServer;
let backend: ScriptedBackend;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-leaks-"));
  const flags = { home, port: 0, starterModel: false, localRuntimes: false, logLevel: "silent" } as const;
  const config = await loadConfig({ flags, env: {} });
  const limits = { ...config.limits, textRetentionMs: 200, eventRetentionMs: 200, resumeWindowMs: 200 };
  backend = new ScriptedBackend("scripted", [scriptedModel("m", { limits: { parallel: 16 } })]);
  backend.answer = async function* (asked, signal) {
    yield [{ type: "accepted", inputTokens: 1 }];
    for (let index = 0; index < 3; index += 1) yield [{ type: "text", candidate: 0, delta: "word " }];
    if (asked.sampling.seed === 1)
      await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
    if (asked.sampling.seed === 2) throw new TypeError("a fault of the runtime");
    yield [{ type: "finish", candidate: 0, finishReason: "stop" }];
  };
  server = await createServer(
    { ...config, limits, embedded: { ...config.embedded, enabled: false } },
    { backends: [backend] },
  );
  await server.listen();
});
afterAll(async () => {
  await server?.close();
  await rm(home, { recursive: true, force: true });
});

const chat = (seed: number, stream: boolean): string =>
  JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], seed, stream });
const native = (seed: number, stream: boolean): string =>
  JSON.stringify({ model: "m", input: "Hi", sampling: { seed }, stream });

/** What one client does; resolves when its connection is gone. */
const clients: readonly (() => Promise<void>)[] = [
  () => send("/v1/chat/completions", chat(0, true)),
  () => send("/v1/chat/completions", chat(1, true), 5),
  () => send("/v1/chat/completions", chat(1, false), 5),
  () => send("/v1/chat/completions", chat(2, true)),
  () =>
    send(
      "/api/chat",
      JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], options: { seed: 1 } }),
      3,
    ),
  () => send("/lmsp/v1/responses", native(1, true), 5),
  () => send("/lmsp/v1/responses", native(2, false)),
  () => send("/lmsp/v1/responses", "{"),
  () => send("/lmsp/v1/nothing", "{}"),
  () => send("/v1/chat/completions", chat(0, true), 0),
  connectOnly,
  pipelined,
];

function send(path: string, body: string, abortAfterMs?: number): Promise<void> {
  const options: RequestOptions = {
    host: "127.0.0.1",
    port: new URL(server.url).port,
    path,
    method: "POST",
    agent: false,
  };
  return new Promise((done) => {
    const sent = request({ ...options, headers: { "content-type": "application/json" } }, (answer) => answer.resume());
    sent.on("error", () => {});
    sent.on("close", () => done());
    sent.end(body);
    if (abortAfterMs !== undefined) setTimeout(() => sent.destroy(), abortAfterMs);
  });
}

function connectOnly(): Promise<void> {
  return new Promise((done) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.end("POST /v1/chat"));
    socket.on("error", () => {});
    socket.on("close", () => done());
    socket.resume();
  });
}

/** Several requests behind one another on one connection, which then goes away. */
function pipelined(): Promise<void> {
  const body = chat(1, true);
  const one = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  return new Promise((done) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.write(one.repeat(3)));
    socket.on("error", () => {});
    socket.on("close", () => done());
    socket.resume();
    setTimeout(() => socket.destroy(), 5);
  });
}

async function runClients(count: number): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const client = clients[next % clients.length];
      next += 1;
      await client?.();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** Waits until nothing is under way, then counts what the process holds. */
async function settle(): Promise<{ readonly handles: Record<string, number>; readonly heapMb: number }> {
  await waitFor(
    async () => (server.core.responses.active === 0 && (await server.connections()) === 0 ? true : undefined),
    20_000,
  );
  await waitFor(() => (server.core.log.bytes === 0 ? true : undefined), 20_000);
  collectGarbage();
  const handles: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) handles[name] = (handles[name] ?? 0) + 1;
  return { handles, heapMb: process.memoryUsage().heapUsed / 1e6 };
}

it(`${rounds} connects, aborts and errors leave no socket, timer, reader or log`, async () => {
  await runClients(500);
  const before = await settle();
  await runClients(rounds);
  const after = await settle();
  measured("heap before / after", `${before.heapMb.toFixed(1)} / ${after.heapMb.toFixed(1)} MB`);
  measured("open handles before", JSON.stringify(before.handles));
  measured("open handles after", JSON.stringify(after.handles));
  expect(server.core.scheduler).toMatchObject({ running: 0, queued: 0 });
  expect(backend.running).toBe(0);
  expect((await server.core.responses.list({ limit: 10 }, { id: "local", scopes: new Set(["admin"]) })).data).toEqual(
    [],
  );
  for (const name of new Set([...Object.keys(before.handles), ...Object.keys(after.handles)])) {
    // The test's own timers and polls come and go by a few.
    expect(after.handles[name] ?? 0, name).toBeLessThanOrEqual((before.handles[name] ?? 0) + 3);
  }
  expect(after.heapMb - before.heapMb).toBeLessThan(20);
});
