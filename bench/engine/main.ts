/**
 * The embedded engine beside llama.cpp's own server on the same file: the built product with its whole path (through
 * the OpenAI door), the same threads, context and sequences, in interleaved rounds. Ratios of medians.
 *   node --conditions=@plenum/source --import tsx bench/engine/main.ts --rounds 5 [--only prompt,abort]
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median, percentile } from "../statistics.ts";
import { experiments } from "./experiments.ts";
import { type Figure, type FigureName, figures } from "./figures.ts";
import { coresOfOthers, readCpu } from "./processes.ts";
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
    /** A measurement in which other programs took more cores than this is tried again, three times at most. */
    quiet: { type: "string", default: "0.15" },
    /** Adds rounds to those that the results file holds, where the machine can't be alone for long at once. */
    more: { type: "boolean", default: false },
    results: { type: "string", default: `${root}bench/results/engine.json` },
  },
});

const targetNames = ["plenum", "llama-server"] as const;

interface Summary {
  readonly unit: string;
  readonly plenum: number;
  readonly llamaServer: number;
  readonly ratio: number;
  readonly wanted: string;
  readonly isMet: boolean;
  /** In the order of the rounds. */
  readonly rounds: Readonly<Record<string, readonly number[]>>;
  /** Cores that other programs took meanwhile, in each round of each target. */
  readonly coresOfOthers: readonly number[];
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
const quietCores = Number(flags.quiet);
const mostTries = 3;
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

/** The try that was least disturbed. */
async function measureQuietly<T>(run: () => Promise<T>): Promise<{ readonly found: T; readonly others: number }> {
  let best: { readonly found: T; readonly others: number } | undefined;
  for (let tries = 0; tries < mostTries; tries += 1) {
    const before = readCpu([process.pid]);
    const found = await run();
    const others = coresOfOthers(before, readCpu([process.pid]));
    if (best === undefined || others < best.others) best = { found, others };
    if (others <= quietCores) break;
  }
  if (best === undefined) throw new RangeError("nothing was tried");
  return best;
}

async function measure(targets: readonly Target[]): Promise<void> {
  for (const target of targets) for (const { run } of chosen.slice(0, 1)) await run(target, requests);
  for (let round = 1; round <= rounds; round += 1) {
    const order = round % 2 === 0 ? targets : [...targets].reverse();
    for (const experiment of chosen) {
      for (const target of order) {
        const { found, others } = await measureQuietly(() => experiment.run(target, requests));
        note(target, found, others);
        const told = JSON.stringify(found, (_, value) => (typeof value === "number" ? rounded(value) : value));
        process.stderr.write(`round ${round}, ${target.name}: ${told}, others ${rounded(others)} cores\n`);
      }
    }
    await save();
  }
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
    rounds: { plenum: ours.map(rounded), "llama-server": theirs.map(rounded) },
    coresOfOthers: others.map(rounded),
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

type Figures = Partial<Record<FigureName, Summary>>;

async function readEarlier(): Promise<Figures> {
  if (flags.only === undefined && !flags.more) return {};
  try {
    return JSON.parse(await readFile(flags.results, "utf8")).figures;
  } catch {
    return {};
  }
}

function takeUp(figures: Figures): void {
  for (const [name, { rounds: earlier, coresOfOthers: others }] of Object.entries(figures) as [FigureName, Summary][]) {
    measured.set(name, new Map(targetNames.map((target) => [target, [...(earlier[target] ?? [])]])));
    disturbance.set(name, [...others]);
  }
}

async function save(): Promise<Figures> {
  const found = Object.fromEntries([...measured.keys()].map((name) => [name, summarise(name)]));
  const facts = {
    node: process.version,
    cpus: cpus().length,
    cpu: cpus()[0]?.model,
    load: loadavg()[0],
    ...settings,
    modelFile: settings.modelFile.split("/").at(-1),
    ...requests,
  };
  const results = { facts, figures: { ...earlier, ...found } };
  await mkdir(fileURLToPath(new URL("../results/", import.meta.url)), { recursive: true });
  await writeFile(flags.results, `${JSON.stringify(results, null, 2)}\n`);
  return found;
}

const earlier = await readEarlier();
if (flags.more) takeUp(earlier);
const targets = [
  await startPlenum(settings),
  await (flags["llama-server"] === undefined ? startLlamaServer(settings) : runningLlamaServer(flags["llama-server"])),
];
const stopTargets = () => Promise.all(targets.map((target) => target.stop()));
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => void stopTargets().finally(() => process.exit(1)));
}
try {
  await measure(targets);
} finally {
  await stopTargets();
}

const found = await save();
console.log(`${settings.threads} threads, ${settings.parallel} sequences of ${settings.contextTokens} tokens`);
console.table(
  Object.fromEntries(
    Object.entries(found).map(([name, { rounds: each, coresOfOthers: others, ...row }]) => [
      name,
      { ...row, rounds: each["plenum"]?.length, others: rounded(median(others)) },
    ]),
  ),
);
