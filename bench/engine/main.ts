/**
 * The embedded engine beside llama.cpp's own server on the same file: the built product with its whole path (through
 * the OpenAI door), the same threads, context and sequences, in interleaved rounds. Ratios of medians.
 *   node --conditions=@plenum/source --import tsx bench/engine/main.ts --rounds 5 [--only prompt,abort]
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { experiments } from "./experiments.ts";
import { type Figure, type FigureName, figures } from "./figures.ts";
import { coresOfOthers, readCpu } from "./processes.ts";
import { median, percentile } from "./statistics.ts";
import { runningLlamaServer, startLlamaServer, startPlenum, type Target } from "./targets.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    model: { type: "string", default: `${root}.cache/models/smollm2-135m-instruct-q4_1.gguf` },
    threads: { type: "string", default: String(cpus().length) },
    context: { type: "string", default: "2048" },
    parallel: { type: "string", default: "8" },
    /** Tokens of each answer where throughput is measured. */
    tokens: { type: "string", default: "96" },
    /** End tokens of the model; the default is the starter model's. */
    barred: { type: "string", default: "0,2" },
    /** A llama-server that runs already, with the same settings. */
    "llama-server": { type: "string" },
    /** Names of experiments; others keep what the results file holds. */
    only: { type: "string" },
    results: { type: "string", default: `${root}bench/results/engine.json` },
  },
});

interface Summary {
  readonly unit: string;
  readonly plenum: number;
  readonly llamaServer: number;
  readonly ratio: number;
  readonly wanted: string;
  readonly isMet: boolean;
  /** Cores that other programs took meanwhile, in the median and at most. */
  readonly coresOfOthers: readonly [number, number];
  readonly rounds: Readonly<Record<string, readonly number[]>>;
}

const settings = {
  modelFile: flags.model,
  threads: Number(flags.threads),
  contextTokens: Number(flags.context),
  parallel: Number(flags.parallel),
};
const requests = {
  barred: flags.barred.split(",").filter(Boolean).map(Number),
  answerTokens: Number(flags.tokens),
};
const rounds = Number(flags.rounds);
const chosen = experiments.filter(({ name }) => flags.only === undefined || flags.only.split(",").includes(name));

const measured = new Map<FigureName, Map<string, number[]>>();
const disturbance = new Map<FigureName, number[]>();

function note(target: Target, found: Partial<Record<FigureName, readonly number[]>>, others: number): void {
  for (const name of Object.keys(found) as FigureName[]) {
    const byTarget = measured.get(name) ?? new Map<string, number[]>();
    measured.set(name, byTarget);
    byTarget.set(target.name, [...(byTarget.get(target.name) ?? []), ...(found[name] ?? [])]);
    disturbance.set(name, [...(disturbance.get(name) ?? []), others]);
  }
}

async function measure(targets: readonly Target[]): Promise<void> {
  const roots = [process.pid];
  for (const target of targets) for (const { run } of chosen.slice(0, 1)) await run(target, requests);
  for (let round = 1; round <= rounds; round += 1) {
    const order = round % 2 === 0 ? targets : [...targets].reverse();
    for (const experiment of chosen) {
      for (const target of order) {
        const before = readCpu(roots);
        const found = await experiment.run(target, requests);
        note(target, found, coresOfOthers(before, readCpu(roots)));
      }
      process.stderr.write(`\rround ${round} of ${rounds}: ${experiment.name.padEnd(16)}`);
    }
  }
  process.stderr.write("\n");
}

function summarise(name: FigureName): Summary {
  const figure: Figure = figures[name];
  const byTarget = measured.get(name);
  const [ours = [], theirs = []] = [byTarget?.get("plenum"), byTarget?.get("llama-server")];
  const of = (numbers: readonly number[]) =>
    figure.summary === "p95"
      ? percentile(numbers, 0.95)
      : figure.summary === "worst"
        ? percentile(numbers, 1)
        : median(numbers);
  const [plenum, llamaServer] = [of(ours), of(theirs)];
  const ratio = plenum / llamaServer;
  const others = disturbance.get(name) ?? [];
  return {
    unit: figure.unit + (figure.summary === undefined ? "" : `, ${figure.summary}`),
    plenum: rounded(plenum),
    llamaServer: rounded(llamaServer),
    ratio: rounded(ratio),
    wanted: wanted(figure),
    isMet: isMet(figure, plenum, ratio),
    coresOfOthers: [rounded(median(others)), rounded(percentile(others, 1))],
    rounds: { plenum: ours.map(rounded), "llama-server": theirs.map(rounded) },
  };
}

function isMet({ ratio: limit, atMost }: Figure, ours: number, ratio: number): boolean {
  if (atMost !== undefined) return ours <= atMost;
  if (limit === undefined) return true;
  return "atLeast" in limit ? ratio >= limit.atLeast : ratio <= limit.atMost;
}

function wanted({ ratio, atMost, unit }: Figure): string {
  if (atMost !== undefined) return `≤ ${atMost} ${unit}`;
  if (ratio === undefined) return "";
  return "atLeast" in ratio ? `ratio ≥ ${ratio.atLeast}` : `ratio ≤ ${ratio.atMost}`;
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

async function earlierFigures(): Promise<Record<string, unknown>> {
  if (flags.only === undefined) return {};
  try {
    return JSON.parse(await readFile(flags.results, "utf8")).figures;
  } catch {
    return {};
  }
}

const targets = [
  await startPlenum(settings),
  await (flags["llama-server"] === undefined ? startLlamaServer(settings) : runningLlamaServer(flags["llama-server"])),
];
try {
  await measure(targets);
} finally {
  for (const target of targets) await target.stop();
}

const summaries = Object.fromEntries([...measured.keys()].map((name) => [name, summarise(name)]));
console.log(
  `${rounds} rounds, ${settings.threads} threads, ${settings.parallel} sequences of ${settings.contextTokens}`,
);
console.table(Object.fromEntries(Object.entries(summaries).map(([name, { rounds: _rounds, ...row }]) => [name, row])));
await mkdir(fileURLToPath(new URL("../results/", import.meta.url)), { recursive: true });
const facts = {
  node: process.version,
  cpus: cpus().length,
  cpu: cpus()[0]?.model,
  load: loadavg()[0],
  rounds,
  ...settings,
  modelFile: settings.modelFile.split("/").at(-1),
  ...requests,
};
const results = { facts, figures: { ...(await earlierFigures()), ...summaries } };
await writeFile(flags.results, `${JSON.stringify(results, null, 2)}\n`);
