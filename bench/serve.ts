/** One target of the bench, in a process of its own: `plenum`, or `pipe`, a bare node:http server with the same bytes. */

import { mkdtemp } from "node:fs/promises";
import { createServer as createHttpServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { createServer, loadConfig } from "@plenum/server";

export const tokensPerAnswer = 128;

/** A runtime that costs nothing: batches of four tokens, a turn of the event loop between them. */
function createBackend(): ScriptedBackend {
  const backend = new ScriptedBackend("scripted", [scriptedModel("m", { limits: { parallel: 256 } })]);
  backend.answer = async function* () {
    backend.requests.length = 0;
    yield [{ type: "accepted", inputTokens: 8 }];
    for (let made = 0; made < tokensPerAnswer; made += 4) {
      await new Promise((done) => setImmediate(done));
      yield Array.from({ length: 4 }, () => ({ type: "text", candidate: 0, delta: " token" }) as const);
    }
    yield [
      { type: "finish", candidate: 0, finishReason: "stop" },
      {
        type: "usage",
        usage: { inputTokens: 8, outputTokens: tokensPerAnswer, cachedInputTokens: 0, reasoningTokens: 0 },
      },
    ];
  };
  return backend;
}

async function servePlenum(): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), "plenum-bench-"));
  const config = await loadConfig({
    flags: { home, port: 0, starterModel: false, localRuntimes: false, logLevel: "silent" },
    env: {},
  });
  const limits = { ...config.limits, textRetentionMs: 1_000 };
  const server = await createServer(
    { ...config, limits, embedded: { ...config.embedded, enabled: false } },
    { backends: [createBackend()] },
  );
  await server.listen();
  return server.url;
}

/** The same number of events and about the same bytes, with nothing between: what node:http itself costs. */
function servePipe(): Promise<string> {
  const chunk = `data: {"id":"chatcmpl-0123456789abcdefghijklmn","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}\n\n`;
  const server = createHttpServer((request, answer) => {
    request.resume();
    request.on("end", async () => {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      for (let made = 0; made < tokensPerAnswer; made += 4) {
        await new Promise((done) => setImmediate(done));
        answer.write(chunk.repeat(4));
      }
      answer.end("data: [DONE]\n\n");
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`);
    });
  });
}

if (process.send !== undefined) {
  const url = await (process.argv[2] === "plenum" ? servePlenum() : servePipe());
  process.on("message", () => process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage.rss() }));
  process.on("disconnect", () => process.exit(0));
  process.send({ url });
}
