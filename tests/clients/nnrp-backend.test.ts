import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatModel, measured, skipReason, starterModelFile } from "../e2e/service.ts";
import { noPeer, type PeerServer, startPeerServer } from "./nnrp-peer.ts";

const home = mkdtemp(join(tmpdir(), "plenum-nnrp-backend-"));
const services: PlenumServer[] = [];
afterAll(async () => {
  for (const service of services.toReversed()) await service.close({ drainMs: 0 });
  await rm(await home, { recursive: true, force: true });
});

const messages = [{ role: "user" as const, content: "ping" }];
const openaiOf = ({ url }: PlenumServer) => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** Aborts at the first text. @returns milliseconds until that has had its effect, looked for in each turn of the loop */
async function cancelled(
  stream: AsyncIterable<OpenAI.ChatCompletionChunk>,
  abort: AbortController,
  isDone: () => boolean,
): Promise<number> {
  let from = 0;
  for await (const chunk of stream) {
    if (!chunk.choices[0]?.delta.content) continue;
    from = performance.now();
    abort.abort();
    break;
  }
  while (!isDone()) await new Promise((resolve) => setImmediate(resolve));
  return performance.now() - from;
}

interface Start {
  readonly name: string;
  /** Of the only runtime; undefined: the embedded engine. */
  readonly upstream?: string;
}

async function start({ name, upstream }: Start): Promise<PlenumServer> {
  const runtime = { kind: "nnrp", url: upstream };
  const config = await loadConfig({
    flags: { home: join(await home, name), port: 0, starterModel: false, localRuntimes: false, logLevel: "silent" },
    preset: [
      { path: ["runtimes"], value: upstream === undefined ? {} : { far: runtime }, origin: name },
      { path: ["embedded", "enabled"], value: upstream === undefined, origin: name },
      { path: ["models"], value: join(await home, "models"), origin: name },
      { path: ["nnrp", "listen"], value: upstream === undefined ? ["tcp://127.0.0.1:0"] : [], origin: name },
    ],
    env: {},
  });
  const service = await createServer(config);
  services.push(service);
  await service.listen();
  await service.core.catalog.ready;
  return service;
}

const why = noPeer === undefined ? "" : `, skipped: ${noPeer}`;

/** The peer's server as the only runtime of a service. */
describe.skipIf(noPeer !== undefined).each(["tcp", "websocket", "ipc"])(
  `nnrp-py's server as a runtime, over %s${why}`,
  (carrier) => {
    let peer: PeerServer;
    let service: PlenumServer;
    beforeAll(async () => {
      const socket = `unix://${await home}/${carrier}.sock`;
      peer = await startPeerServer(["tcp://127.0.0.1:0", "ws://127.0.0.1:0", socket]);
      service = await start({ name: carrier, upstream: peer.endpoints[carrier] ?? "" });
    });
    afterAll(() => peer?.stop());

    it("has the peer's models", async () => {
      const { data } = await openaiOf(service).models.list();
      expect(data.map(({ id }) => id)).toEqual(["example-model", "example-embedder"]);
    });

    it("streams to OpenAI's SDK", async () => {
      const stream = await openaiOf(service).chat.completions.create({
        model: "example-model",
        messages,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = "";
      let last: OpenAI.ChatCompletionChunk | undefined;
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        last = chunk;
      }
      expect(text).toBe("Hello, wörld ✓");
      expect(last?.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 3 });
    });

    it("answers in one piece", async () => {
      const { choices } = await openaiOf(service).chat.completions.create({ model: "example-model", messages });
      expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "Hello" } });
    });

    it("calls tools", async () => {
      const tools = [{ type: "function" as const, function: { name: "lookup", parameters: { type: "object" } } }];
      const stream = openaiOf(service).chat.completions.stream({ model: "example-model", messages, tools });
      const { choices } = await stream.finalChatCompletion();
      expect(choices[0]?.message.tool_calls).toMatchObject([
        { function: { name: "lookup", arguments: '{"key":"value"}' } },
      ]);
    });

    it("streams to Ollama's client", async () => {
      const ollama = new Ollama({ host: service.url });
      let text = "";
      for await (const part of await ollama.chat({ model: "example-model", messages, stream: true })) {
        text += part.message.content;
      }
      expect(text).toBe("Hello, wörld ✓");
    });

    it("runs ten at once", async () => {
      // With the SDK's own retries: a connection that is lost meanwhile is opened again, and the problem says "later".
      const openai = new OpenAI({ baseURL: `${service.url}/v1`, apiKey: "none" });
      const texts = await Promise.all(
        Array.from({ length: 10 }, async () => {
          const stream = openai.chat.completions.stream({ model: "example-model", messages });
          return (await stream.finalChatCompletion()).choices[0]?.message.content;
        }),
      );
      expect(texts).toEqual(Array(10).fill("Hello, wörld ✓"));
    });
  },
);

describe.skipIf(noPeer !== undefined)(`nnrp-py's server with models of its own${why}`, () => {
  let peer: PeerServer;
  let service: PlenumServer;
  beforeAll(async () => {
    const script = join(await home, "script.json");
    const standard = JSON.parse(await readFile(new URL("nnrp-peer/scripts/default.json", import.meta.url), "utf8")) as {
      rules: object[];
    };
    const names = ["slow-model", "dropping-model", "missing-model", "failing-model"];
    const body = { object: "list", data: names.map((id) => ({ id })) };
    const list = {
      when: { operation: "models.list" },
      steps: [{ finish: { type: "response.completed", body } }],
    };
    await writeFile(script, JSON.stringify({ ...standard, rules: [list, ...standard.rules] }));
    peer = await startPeerServer(["tcp://127.0.0.1:0"], ["--script", script]);
    service = await start({ name: "scripted", upstream: peer.endpoints["tcp"] ?? "" });
  });
  afterAll(() => peer?.stop());

  const cancels = () =>
    peer.lines.filter(({ event, type, message }) => event === "received" && /cancel/i.test(`${type}${message}`));

  it("a client that goes away in the middle of a stream cancels at the peer, and the place is free", async () => {
    const times: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const before = cancels().length;
      const abort = new AbortController();
      const stream = await openaiOf(service).chat.completions.create(
        { model: "slow-model", messages, stream: true },
        { signal: abort.signal },
      );
      times.push(await cancelled(stream, abort, () => cancels().length > before));
      expect(cancels().length).toBe(before + 1);
    }
    measured("the client leaves until the peer has told of the CANCEL", `median ${median(times).toFixed(1)} ms`);
  });

  it.each([
    ["missing-model", 404],
    ["dropping-model", 503],
  ])("%s: status %i", async (model, status) => {
    await expect(openaiOf(service).chat.completions.create({ model, messages })).rejects.toMatchObject({ status });
  });
});

const whyNot = skipReason === undefined ? "" : `, skipped: ${skipReason}`;

/** What `plenum bridge` starts, before a service with the embedded engine. */
describe.skipIf(skipReason !== undefined)(`a service as another one's runtime${whyNot}`, () => {
  let far: PlenumServer;
  let near: PlenumServer;
  beforeAll(async () => {
    const models = join(await home, "models");
    await mkdir(models, { recursive: true });
    await symlink(starterModelFile ?? "", join(models, starterModelFile?.split("/").at(-1) ?? ""));
    far = await start({ name: "far" });
    const { interfaces } = (await (await fetch(`${far.url}/.well-known/lmsp`)).json()) as {
      interfaces: readonly { kind: string; transport?: string; url: string }[];
    };
    const upstream = interfaces.find(({ kind, transport }) => kind === "nnrp" && transport === "tcp")?.url;
    near = await start({ name: "near", upstream: upstream ?? "" });
    await far.core.catalog.ready;
  });

  it("streams a chat of the starter model, as that service itself answers it", async () => {
    const asked = { model: chatModel, messages, max_tokens: 24, temperature: 0 };
    const texts = await Promise.all(
      [far, near].map(async (service) => {
        const { choices } = await openaiOf(service).chat.completions.stream(asked).finalChatCompletion();
        return choices[0]?.message.content;
      }),
    );
    expect(texts[0]?.length).toBeGreaterThan(0);
    expect(texts[1]).toBe(texts[0]);
  });

  it("tells log probabilities", async () => {
    const asked = { model: chatModel, messages, max_tokens: 4, temperature: 0, logprobs: true, top_logprobs: 2 };
    const [there, here] = await Promise.all(
      [far, near].map((service) => openaiOf(service).chat.completions.create(asked)),
    );
    expect(here?.choices[0]?.logprobs?.content).toHaveLength(4);
    expect(here?.choices[0]?.logprobs).toEqual(there?.choices[0]?.logprobs);
  });

  it("has the same capabilities of each model", () => {
    const able = (service: PlenumServer) =>
      service.core.catalog.list().map(({ id, capabilities: { completion, insert, ...others } }) => [id, others]);
    expect(able(near)).toEqual(able(far));
  });

  it("a cancel at this service reaches the engine there", async () => {
    const running = () => far.core.scheduler.running;
    const times: number[] = [];
    for (let round = 0; round < 9; round += 1) {
      const abort = new AbortController();
      const stream = await openaiOf(near).chat.completions.create(
        { model: chatModel, messages, max_tokens: 2000, temperature: 0, stream: true },
        { signal: abort.signal },
      );
      times.push(await cancelled(stream, abort, () => running() === 0));
    }
    measured("the client leaves until the far service's run has ended", `median ${median(times).toFixed(1)} ms`);
  });
});
