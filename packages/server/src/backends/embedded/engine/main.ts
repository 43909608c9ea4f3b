/** Entry of the engine child: loads one model, then answers the service's messages until it goes away. */
import { writeFileSync } from "node:fs";
import type { EngineConfig, EngineEvent, EngineMessage, ServiceMessage } from "../messages.ts";
import { EmbeddingLoop } from "./embedding-loop.ts";
import { toFailure } from "./engine-error.ts";
import { GenerationLoop } from "./loop.ts";
import { type LoadedModel, loadModel } from "./model.ts";

const memoryReportMs = 10_000;

type Handler = (message: ServiceMessage) => void;

let handle: Handler = (message) => {
  if (message.type !== "start") return;
  handle = () => undefined;
  void start(message.config);
};

process.on("message", (message: ServiceMessage) => {
  if (message.type === "exit") process.exit(0);
  handle(message);
});
// A terminal and a service manager send these to the whole group; the service lets running answers finish first.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
// The service is gone, so nobody is left to answer.
process.on("disconnect", () => process.exit(0));

function send(message: EngineMessage): void {
  if (process.connected) process.send?.(message);
}

async function start(config: EngineConfig): Promise<void> {
  offerToMemoryKiller();
  try {
    const model = await loadModel(config);
    handle = config.use === "text" ? await serveText(model) : serveEmbeddings(model);
    send(readyMessage(model));
    setInterval(() => send({ type: "memory", rssBytes: process.memoryUsage.rss() }), memoryReportMs);
  } catch (error) {
    send({ type: "load-failed", failure: toFailure(error) });
  }
}

function emit(events: EngineEvent[]): void {
  send({ type: "events", events });
}

async function serveText(model: LoadedModel): Promise<Handler> {
  const loop = new GenerationLoop(model, emit);
  await loop.warmUp();
  void loop.run();
  return (message) => {
    if (message.type === "generate") loop.submit(message);
    else if (message.type === "abort") loop.abort(message.id);
  };
}

function serveEmbeddings(model: LoadedModel): Handler {
  const loop = new EmbeddingLoop(model, emit);
  return (message) => {
    if (message.type === "embed") void loop.submit(message);
    else if (message.type === "abort") loop.abort(message.id);
  };
}

function readyMessage({ vocabulary }: LoadedModel): EngineMessage {
  const { bosText, eosText } = vocabulary;
  return {
    type: "ready",
    ...(bosText === undefined ? {} : { bosToken: bosText }),
    ...(eosText === undefined ? {} : { eosToken: eosText }),
    controlTokens: vocabulary.special.map((token) => token.text),
    canInsert: vocabulary.infill !== undefined,
    rssBytes: process.memoryUsage.rss(),
  };
}

/** When memory runs out, Linux is to end this process and not the service. */
function offerToMemoryKiller(): void {
  if (process.platform !== "linux") return;
  try {
    writeFileSync("/proc/self/oom_score_adj", "500");
  } catch {
    // Not allowed in every container; the service then takes its chance with the child.
  }
}
