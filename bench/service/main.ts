/**
 * The whole service in front of a synthetic upstream, beside nginx (which only copies bytes), Portkey's gateway and the
 * upstream itself: interleaved rounds, the server on one core, upstream and load client on another.
 *   npm run bench -- service --rounds 5 --only small,paced --targets nginx,plenum
 */
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { goals } from "./goals.ts";
import { buildHarness, hasProgram, installPortkey } from "./install.ts";
import { Server } from "./process.ts";
import { figureOf, type LoadResult, merge, type Run, type Summary, summarise, table } from "./summary.ts";
import { targets, upstreamUrl } from "./targets.ts";
import { upstreamDefaults, type Workload, workloads } from "./workloads.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    /** Seconds of a round, where it has no end of its own. */
    seconds: { type: "string", default: "3" },
    /** Seconds of the round before, in which everything becomes warm. */
    warm: { type: "string", default: "10" },
    only: { type: "string" },
    targets: { type: "string" },
    "server-core": { type: "string", default: "0" },
    "load-core": { type: "string", default: "1" },
    results: { type: "string", default: join(root, "bench/results/service.json") },
  },
});
const run = promisify(execFile);
const isAsked = (list: string | undefined, name: string): boolean =>
  list === undefined || list.split(",").includes(name);

const chosen = workloads.filter(({ name }) => isAsked(flags.only, name));
const bin = await buildHarness(root);
const hasNginx = await hasProgram("nginx");
if (!hasNginx) console.error("!!! nginx is not installed: its column is missing");
const specs = targets(root, await installPortkey(root)).filter(
  ({ name }) => isAsked(flags.targets, name) && (name !== "nginx" || hasNginx),
);
const upstream = new Server(
  {
    name: "upstream",
    url: `${upstreamUrl}/health`,
    headers: [],
    skips: [],
    start: async () => ({ command: [join(bin, "upstream")] }),
  },
  flags["load-core"],
);
const servers = specs.map((spec) => new Server(spec, flags["server-core"]));
const runs: Run[] = [];

async function load(workload: Workload, server: Server, seconds: string): Promise<LoadResult> {
  const { url, headers } = server.spec;
  const config = JSON.stringify({ ...upstreamDefaults, ...workload.upstream });
  const flagsOf = workload.flags.replace("SECONDS", `${seconds}s`).split(" ");
  const args = ["-c", flags["load-core"], join(bin, "load"), "-url", url, "-model", "bench"];
  args.push("-control", upstreamUrl, "-config", config, "-pids", `up=${upstream.pid}`);
  if (server.pid !== undefined) args.push("-pids", `sut=${server.pid}`);
  for (const header of headers) args.push("-header", header);
  const { stdout } = await run("taskset", [...args, ...flagsOf], { timeout: 180_000, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout);
}

async function measure(workload: Workload, round: number): Promise<void> {
  for (const server of servers) {
    const { name, skips } = server.spec;
    if (skips.includes(workload.name)) continue;
    if (workload.isFresh) {
      await server.stop();
      await server.start();
    }
    const result = await load(workload, server, round === 0 ? flags.warm : flags.seconds);
    runs.push({ workload: workload.name, target: name, round, load: loadavg()[0] ?? 0, result });
    const told = workload.figures.map((figure) => `${figure} ${figureOf(result, figure)?.toPrecision(4) ?? "–"}`);
    const errors = result.errors ? `, ${result.errors} errors: ${result.error_samples?.[0]}` : "";
    console.error(`${workload.name}, round ${round}, ${name}: ${told.join(", ")}${errors}`);
  }
}

/** Workloads that were not asked for keep what the results file holds of them. */
async function readEarlier(): Promise<Summary | undefined> {
  try {
    return JSON.parse(await readFile(flags.results, "utf8"));
  } catch {
    return undefined;
  }
}

try {
  await upstream.start();
  for (const server of servers) await server.start();
  // Nothing is warm in the first round, so it is thrown away.
  for (const workload of chosen) if (!workload.isFresh) await measure(workload, 0);
  runs.length = 0;
  for (const workload of chosen) {
    const rounds = workload.isFresh ? 1 : Number(flags.rounds);
    for (let round = 1; round <= rounds; round += 1) await measure(workload, round);
  }
} finally {
  for (const server of servers) await server.stop();
  await upstream.stop();
}

const facts = { node: process.version, cpus: cpus().length, cpu: cpus()[0]?.model, rounds: Number(flags.rounds) };
const summary = merge(await readEarlier(), summarise(runs, chosen, goals));
console.log(table(summary));
await mkdir(join(root, "bench/results"), { recursive: true });
await writeFile(flags.results, `${JSON.stringify({ facts, ...summary }, null, 2)}\n`);
