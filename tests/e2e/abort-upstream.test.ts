import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Forked, forkProgram } from "./processes/fork.ts";
import type { ServiceCounts } from "./processes/service.ts";
import { measured } from "./service.ts";

/** Client, service and runtime are processes of their own with one clock: no event loop waits for another's work. */
const tries = 1_000;

let upstream: Forked;
let service: Forked;
beforeAll(async () => {
  upstream = await forkProgram("upstream");
  service = await forkProgram("service", [upstream.url, "8", "silent", "60000"]);
});
afterAll(async () => {
  await service?.stop();
  await upstream?.stop();
});

const messages = [{ role: "user", content: "Hi" }];

/** Where the runtime's answer is when the client goes away. */
const phases = ["endless-silence", "endless-head", "endless-wait", "endless-stream"] as const;
const doors = [
  ["by-openai", "/v1/chat/completions"],
  ["by-ollama", "/v1/chat/completions"],
  ["by-openai", "/api/chat"],
  ["by-ollama", "/api/chat"],
] as const;

const kinds = phases.flatMap((phase) =>
  doors.flatMap(([runtime, path]) => [true, false].map((stream) => ({ phase, runtime, path, stream }))),
);

type Kind = (typeof kinds)[number];

/** Milliseconds from the client's close until the runtime's socket is closed. */
async function leave({ phase, runtime, path, stream }: Kind): Promise<number> {
  const body = JSON.stringify({ model: `${runtime}/${phase}`, messages, stream });
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  const began = upstream.next("began");
  const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  const read = firstBytes(socket);
  socket.write(`${head}\r\n\r\n${body}`);
  await Promise.race([began, read.then(() => began)]);
  if (stream && phase === "endless-stream") await read;
  const closed = upstream.next("closedAt");
  const leftAt = process.hrtime.bigint();
  socket.destroy();
  return Number(BigInt(await closed) - leftAt) / 1e6;
}

/** Rejects when they are no answer of status 200. */
function firstBytes(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("data", (bytes: Buffer) => {
      const text = bytes.toString();
      if (text.startsWith("HTTP/1.1 200")) resolve();
      else reject(new Error(text));
    });
  });
}

it(`${tries} clients that go away: each runtime's connection is closed at once, none is left`, async () => {
  const times = new Map<string, number[]>();
  for (let index = 0; index < 100 + tries; index += 1) {
    const kind = kinds[index % kinds.length];
    if (kind === undefined) break;
    const ms = await leave(kind);
    if (index < 100) continue;
    for (const name of ["all", kind.stream ? "streaming" : "whole", kind.phase]) {
      times.set(name, [...(times.get(name) ?? []), ms]);
    }
  }
  for (const [name, values] of times) {
    values.sort((a, b) => a - b);
    const at = (share: number): string => (values[Math.floor(share * (values.length - 1))] ?? 0).toFixed(2);
    measured(
      `client close to closed upstream connection, ${name}`,
      `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms of ${values.length}`,
    );
  }
  expect(times.get("all")).toHaveLength(tries);
  expect(await upstream.ask("running")).toBe(0);
  const counts: ServiceCounts = await service.ask("counts");
  expect(counts).toMatchObject({ running: 0, queued: 0, connections: 0 });
});
