import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { afterAll, beforeAll, expect, it } from "vitest";
import { measured } from "./service.ts";

/** Rounds of random disconnects. */
const rounds = 200;
const atOnce = 10;
const pieces = 80;

let server: PlenumServer;
let backend: ScriptedBackend;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-resume-"));
  const flags = { home, port: 0, starterModel: false, localRuntimes: false, logLevel: "silent" } as const;
  const config = await loadConfig({ flags, env: {} });
  backend = new ScriptedBackend("scripted", [scriptedModel("m", { limits: { parallel: 16 } })]);
  backend.answer = async function* () {
    yield [{ type: "accepted", inputTokens: 1 }];
    for (let index = 0; index < pieces; index += 1) {
      if (index % 4 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      yield [{ type: "text", candidate: 0, delta: `${index}é ` }];
    }
    yield [{ type: "finish", candidate: 0, finishReason: "stop" }];
  };
  server = await createServer({ ...config, embedded: { ...config.embedded, enabled: false } }, { backends: [backend] });
  await server.listen();
});
afterAll(async () => {
  await server?.close({ drainMs: 0 });
  await rm(home, { recursive: true, force: true });
});

async function create(body: object): Promise<string> {
  const answer = await fetch(`${server.url}/lmsp/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", input: "Hi", ...body }),
  });
  if (answer.status === 202) return (await answer.json()).id;
  const id = answer.headers.get("x-lmsp-response-id") ?? "";
  await answer.body?.cancel();
  return id;
}

/** Blocks with a number after a place; at most so many, then the connection is given up. */
async function read(id: string, after: number, most = Number.POSITIVE_INFINITY): Promise<string[]> {
  const abort = new AbortController();
  const headers: Record<string, string> = after === 0 ? {} : { "last-event-id": String(after) };
  const answer = await fetch(`${server.url}/lmsp/v1/responses/${id}/events`, { headers, signal: abort.signal });
  if (answer.status === 204) return [];
  expect(answer.status).toBe(200);
  const blocks: string[] = [];
  let text = "";
  for await (const chunk of (answer.body ?? expect.unreachable()).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      if (!part.startsWith("id: ")) continue;
      if (blocks.length < most) blocks.push(part);
    }
    if (blocks.length < most) continue;
    abort.abort();
    return blocks;
  }
  return blocks;
}

it.each([
  ["foreground", { stream: true }],
  ["stored", { stream: true, store: true }],
  ["background", { background: true }],
])("a %s response is resumed at every event, byte for byte", async (_name, body) => {
  const id = await create(body);
  const all = await read(id, 0);
  expect(all.length).toBeGreaterThan(pieces);
  expect(all.at(-1)).toContain("event: response.completed");
  for (let after = 0; after <= all.length; after += 1) expect(await read(id, after)).toEqual(all.slice(after));
});

it(`a reader that is cut off at random, ${rounds} times, loses and repeats nothing`, async () => {
  let connections = 0;
  const cutOff = async (round: number): Promise<void> => {
    const id = await create(round % 2 === 0 ? { stream: true } : { background: true });
    const seen: string[] = [];
    while (!seen.at(-1)?.includes("event: response.completed")) {
      const most = 1 + Math.floor(Math.random() * 30);
      seen.push(...(await read(id, seen.length, most)));
      connections += 1;
    }
    expect(seen.map((block) => Number(/^id: (\d+)/.exec(block)?.[1]))).toEqual(seen.map((_block, index) => index + 1));
    if (round % 10 === 0) expect(seen).toEqual(await read(id, 0));
  };
  for (let round = 0; round < rounds; round += atOnce) {
    await Promise.all(Array.from({ length: atOnce }, (_none, index) => cutOff(round + index)));
  }
  measured("connections of a reader that was cut off at random", `${connections} for ${rounds} responses`);
});
