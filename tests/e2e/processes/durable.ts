/** A service in a process of its own, with a home that outlives it. Its model says what it is asked to, piece by piece. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { BackendRequest } from "@plenum/core";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { createServer, loadConfig } from "@plenum/server";
import { piecesOf } from "./pieces.ts";

process.on("disconnect", () => void stop());

const [home = ""] = process.argv.slice(2);
const config = await loadConfig({
  flags: { home, port: 0, starterModel: false, localRuntimes: false, logLevel: "warn", logFormat: "json" },
  env: {},
});
const backend = new ScriptedBackend("scripted", [scriptedModel("m", { limits: { parallel: 8 } })]);
backend.answer = async function* (request, signal) {
  const prompt = promptOf(request);
  // On disk before it says anything, so that runs are counted over several processes.
  appendFileSync(join(home, "runs"), `${prompt}\n`);
  yield [{ type: "accepted", inputTokens: 1 }];
  for (const delta of piecesOf(prompt)) {
    await pause(2, undefined, { signal });
    yield [{ type: "text", candidate: 0, delta }];
  }
  yield [{ type: "finish", candidate: 0, finishReason: "stop" }];
};

function promptOf({ input }: BackendRequest): string {
  const [item] = input.kind === "items" ? input.items : [];
  const [part] = item?.type === "message" ? item.content : [];
  return part?.type === "text" ? part.text : "";
}

const server = await createServer(
  { ...config, embedded: { ...config.embedded, enabled: false } },
  { backends: [backend] },
);
await server.listen();
process.send?.({ url: server.url });

async function stop(): Promise<void> {
  await server.close({ drainMs: 0 });
  process.exit(0);
}
