/**
 * Every function that a token or a request passes, beside the least that could do its work: nanoseconds of both and
 * their ratio, in interleaved rounds. A ratio that grows against `bench/results/micro.json` shows a regression early.
 *   npm run bench -- micro --rounds 9 --only sse
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median } from "../statistics.ts";
import { cases, type MicroCase } from "./cases.ts";

const { values: flags } = parseArgs({
  options: { rounds: { type: "string", default: "9" }, only: { type: "string" } },
});
const file = fileURLToPath(new URL("../results/micro.json", import.meta.url));
/** Milliseconds that each side of a case runs in a round. */
const sliceMs = 60;

interface Row {
  readonly ns: number;
  readonly rivalNs: number;
  readonly ratio: number;
}

async function nanosecondsOf(work: () => unknown, units: number): Promise<number> {
  const until = performance.now() + sliceMs;
  const startedAt = performance.now();
  let done = 0;
  while (performance.now() < until) {
    const result = work();
    if (result instanceof Promise) await result;
    done += units;
  }
  return ((performance.now() - startedAt) * 1e6) / done;
}

async function measure({ ours, rival, units }: MicroCase): Promise<Row> {
  const own: number[] = [];
  const other: number[] = [];
  // The first two rounds warm both up.
  for (let round = -2; round < Number(flags.rounds); round += 1) {
    const [a, b] = [await nanosecondsOf(ours, units), await nanosecondsOf(rival, units)];
    if (round < 0) continue;
    own.push(a);
    other.push(b);
  }
  const ratios = own.map((ns, round) => ns / (other[round] ?? Number.NaN));
  return { ns: Math.round(median(own)), rivalNs: Math.round(median(other)), ratio: Number(median(ratios).toFixed(2)) };
}

async function readEarlier(): Promise<Readonly<Record<string, Row>>> {
  try {
    return JSON.parse(await readFile(file, "utf8")).cases;
  } catch {
    return {};
  }
}

const earlier = await readEarlier();
const found: Record<string, Row> = {};
const shown: Record<string, object> = {};
for (const each of cases) {
  if (flags.only !== undefined && !each.name.includes(flags.only)) continue;
  const row = await measure(each);
  found[each.name] = row;
  shown[each.name] = { ...row, rival: each.rivalName, before: earlier[each.name]?.ratio };
  process.stderr.write(".");
}
process.stderr.write("\n");
console.table(shown);
const facts = { node: process.version, cpu: cpus()[0]?.model };
await mkdir(fileURLToPath(new URL("../results/", import.meta.url)), { recursive: true });
await writeFile(file, `${JSON.stringify({ facts, cases: { ...earlier, ...found } }, null, 2)}\n`);
