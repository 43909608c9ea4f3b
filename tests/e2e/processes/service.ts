/** A service in a process of its own, before two runtimes at one address. Counts what it holds when it is asked. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createServer, loadConfig } from "@plenum/server";
import { upstreamKey } from "../../../packages/server/src/backends/shared/testing/faults.ts";
import { waitFor } from "../service.ts";

export interface ServiceCounts {
  readonly running: number;
  readonly queued: number;
  readonly connections: number;
  readonly logBytes: number;
  readonly responses: number;
  readonly heapBytes: number;
  readonly residentBytes: number;
  /** By kind. */
  readonly handles: Readonly<Record<string, number>>;
}

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

const [url = "", parallel = "8", logLevel = "silent", timeoutMs = "200"] = process.argv.slice(2);
const home = await mkdtemp(join(tmpdir(), "plenum-processes-"));
const config = await loadConfig({
  flags: {
    home,
    port: 0,
    starterModel: false,
    localRuntimes: false,
    logLevel: logLevel as "silent",
    logFormat: "json",
  },
  env: {},
});
const runtime = {
  url,
  apiKey: upstreamKey,
  headers: {},
  parallel: Number(parallel),
  headTimeoutMs: Number(timeoutMs),
  silenceTimeoutMs: Number(timeoutMs),
};
const server = await createServer({
  ...config,
  limits: { ...config.limits, textRetentionMs: 200, eventRetentionMs: 200, resumeWindowMs: 200, loadTimeoutMs: 200 },
  embedded: { ...config.embedded, enabled: false },
  runtimes: [
    { ...runtime, name: "by-openai", kind: "openai-compatible" },
    { ...runtime, name: "by-ollama", kind: "ollama" },
  ],
});
await server.listen();
// The lists are long: a busy machine may need longer for them than a start waits.
for (const runtime of ["by-openai", "by-ollama"]) {
  await waitFor(() => server.core.catalog.find(`${runtime}/endless-stream`), 100_000);
}

const readers = { id: "local", scopes: new Set(["admin"] as const) };

/** Waits until nothing is under way. */
async function counts(): Promise<ServiceCounts> {
  const { core } = server;
  await waitFor(async () => core.responses.active === 0 && (await server.connections()) === 0, 20_000);
  await waitFor(() => core.log.bytes === 0, 20_000);
  // Idle connections to the runtimes are closed after 4 s; what is left then is left for good.
  await waitFor(() => handles()["TCPSocketWrap"] === undefined, 20_000);
  collectGarbage();
  const { heapUsed, rss } = process.memoryUsage();
  return {
    running: core.scheduler.running,
    queued: core.scheduler.queued,
    connections: await server.connections(),
    logBytes: core.log.bytes,
    responses: (await core.responses.list({ limit: 10 }, readers)).data.length,
    heapBytes: heapUsed,
    residentBytes: rss,
    handles: handles(),
  };
}

function handles(): Record<string, number> {
  const found: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) found[name] = (found[name] ?? 0) + 1;
  return found;
}

process.on("message", (message) => {
  if (message === "stop") void stop();
  else
    void counts().then(
      (value) => process.send?.({ counts: value }),
      (error) => process.send?.({ error: String(error) }),
    );
});
process.on("disconnect", () => void stop());
process.send?.({ url: server.url });

async function stop(): Promise<void> {
  await server.close({ drainMs: 0 });
  await rm(home, { recursive: true, force: true });
  process.exit(0);
}
