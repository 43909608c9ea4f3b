/** The whole service in a process of its own, before a backend that costs nothing: one text for all that run, at a tick. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BackendEvent, BackendRequest, BackendSink } from "@plenum/core";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { createServer, loadConfig } from "@plenum/server";
import { answerAsks, memoryNow } from "./asks.ts";

/** Microseconds on a clock that all processes of the machine have. */
const now = (): number => Number(process.hrtime.bigint() / 1000n);

interface Run {
  left: number;
  readonly sink: BackendSink;
  readonly resolve: () => void;
}

/** Pace and length of an answer go by the model: `paced`, `flat`, `silent`. */
class TickingBackend extends ScriptedBackend {
  readonly #paced = new Set<Run>();
  readonly #flat = new Set<Run>();
  #isFlatScheduled = false;

  constructor() {
    const limits = { contextTokens: 4096, parallel: 100_000 };
    super(
      "ticking",
      ["paced", "flat", "silent"].map((name) => scriptedModel(name, { limits })),
    );
    setInterval(() => tick(this.#paced), 20);
  }

  override respond({ model }: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void> {
    sink([{ type: "accepted", inputTokens: 3 }]);
    return new Promise((resolve, reject) => {
      const run: Run = { left: model === "paced" ? 100 : 128, sink, resolve };
      if (model === "paced") this.#paced.add(run);
      if (model === "flat") {
        this.#flat.add(run);
        this.#scheduleFlat();
      }
      signal.addEventListener("abort", () => {
        this.#paced.delete(run);
        this.#flat.delete(run);
        reject(signal.reason);
      });
    });
  }

  #scheduleFlat(): void {
    if (this.#isFlatScheduled || this.#flat.size === 0) return;
    this.#isFlatScheduled = true;
    setImmediate(() => {
      this.#isFlatScheduled = false;
      tick(this.#flat);
      this.#scheduleFlat();
    });
  }
}

const ends: readonly BackendEvent[] = [
  { type: "finish", candidate: 0, finishReason: "stop", rawFinishReason: "stop" },
  { type: "usage", usage: { inputTokens: 3, outputTokens: 100, cachedInputTokens: 0, reasoningTokens: 0 } },
];

function tick(runs: Set<Run>): void {
  if (runs.size === 0) return;
  const events: readonly BackendEvent[] = [{ type: "text", candidate: 0, delta: `@${now()};` }];
  for (const run of runs) {
    run.sink(events);
    run.left -= 1;
    if (run.left > 0) continue;
    runs.delete(run);
    run.sink(ends);
    run.resolve();
  }
}

const home = mkdtempSync(join(tmpdir(), "plenum-bench-"));
const addresses = ["tcp://127.0.0.1:0", `unix://${home}/nnrp.sock`];
const flags = {
  home,
  port: 0,
  starterModel: false,
  localRuntimes: false,
  logLevel: "silent",
  nnrp: addresses,
} as const;
const config = await loadConfig({ flags, env: {} });
const server = await createServer(
  { ...config, embedded: { ...config.embedded, enabled: false }, limits: { ...config.limits, queue: 10_000 } },
  { backends: [new TickingBackend()] },
);
await server.listen();

answerAsks({
  /** Addresses, by the way to the service. */
  addresses: () => {
    const nnrp = server.interfaces.filter(({ kind }) => kind === "nnrp").map(({ url }) => url);
    return { sse: `${server.url}/v1/chat/completions`, ...Object.fromEntries(nnrp.map((url) => [wayOf(url), url])) };
  },
  memory: memoryNow,
  /** Microseconds of processor time so far. */
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  responses: () => server.core.responses.active,
});

function wayOf(url: string): string {
  if (url.startsWith("ws://")) return "websocket";
  return url.startsWith("unix://") ? "ipc" : "tcp";
}
