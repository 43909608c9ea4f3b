/** `npm run bench -- report`: writes the tables and plots of `docs/performance.md` anew from `bench/results`. */
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { doorTable, goalTable, pairTable, type Results } from "./nnrp/table.ts";
import { type Summary, table } from "./service/summary.ts";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const page = at("../docs/performance.md");

interface EngineFigure {
  readonly unit: string;
  readonly plenum: number;
  readonly llamaServer: number;
  readonly ratio: number;
  readonly wanted: string;
  readonly isMet: boolean;
  readonly rounds: Readonly<Record<string, readonly number[]>>;
}

interface MicroRow {
  readonly ns: number;
  readonly rivalNs: number;
  readonly ratio: number;
}

async function results<T>(name: string): Promise<T | undefined> {
  try {
    return JSON.parse(await readFile(at(`results/${name}.json`), "utf8"));
  } catch {
    return undefined;
  }
}

/** A bar for each target. */
function plot({ rows }: Summary, workload: string, figure: string, title: string): string {
  const bars = rows.filter((row) => row.workload === workload && row.figures[figure] !== undefined);
  if (bars.length === 0) return "";
  const values = bars.map((row) => Number((row.figures[figure] ?? 0).toPrecision(3)));
  return [
    "```mermaid",
    "xychart-beta horizontal",
    `  title "${title}"`,
    `  x-axis [${bars.map(({ target }) => target).join(", ")}]`,
    `  bar [${values.join(", ")}]`,
    "```",
  ].join("\n");
}

function servicePart(summary: Summary): string {
  return [
    plot(summary, "flat-out", "sut.cpu_us_per_token", "Processor time of a token, flat out (µs)"),
    plot(summary, "paced", "sut.cpu_us_per_token", "Processor time of a token, 256 paced streams (µs)"),
    plot(summary, "small", "sut.cpu_us_per_req", "Processor time of a small whole answer (µs)"),
    plot(summary, "idle", "idle.sut.kb_per_stream", "Memory of an open, silent stream (KiB)"),
    table(summary),
  ].join("\n\n");
}

function enginePart(figures: Readonly<Record<string, EngineFigure>>): string {
  const rows = Object.entries(figures).map(
    ([name, { unit, plenum, llamaServer, ratio, wanted, isMet, rounds }]) =>
      `| ${name} (${unit}) | ${plenum} | ${llamaServer} | ${ratio} | ${wanted} | ${wanted === "" ? "" : isMet ? "met" : "**not met**"} | ${rounds["plenum"]?.length ?? 0} |`,
  );
  return [
    "| figure | Plenum | llama-server | ratio | wanted | | n |",
    "| --- | ---: | ---: | ---: | --- | --- | ---: |",
    ...rows,
  ].join("\n");
}

function microPart(cases: Readonly<Record<string, MicroRow>>): string {
  const rows = Object.entries(cases).map(
    ([name, { ns, rivalNs, ratio }]) =>
      `| ${name} | ${ns.toLocaleString("en")} | ${rivalNs.toLocaleString("en")} | ${ratio} |`,
  );
  return ["| function | ns | rival, ns | ratio |", "| --- | ---: | ---: | ---: |", ...rows].join("\n");
}

function nnrpPart(results: Results): string {
  const pair = "The library; beside each number its ratio to the peer's on the same carrier:";
  const doors = "The door; beside each number its ratio to SSE's:";
  return [pair, pairTable(results), doors, doorTable(results), goalTable(results)].join("\n\n");
}

function replaced(text: string, part: string, made: string): string {
  const begin = `<!-- ${part}: made by \`npm run bench -- report\` -->`;
  const end = `<!-- end of ${part} -->`;
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no place for ${part}`);
  return `${text.slice(0, from + begin.length)}\n\n${made}\n\n${text.slice(to)}`;
}

let text = await readFile(page, "utf8");
const service = await results<Summary>("service");
if (service !== undefined) text = replaced(text, "service", servicePart(service));
const engine = await results<{ readonly figures: Readonly<Record<string, EngineFigure>> }>("engine");
if (engine !== undefined) text = replaced(text, "engine", enginePart(engine.figures));
const micro = await results<{ readonly cases: Readonly<Record<string, MicroRow>> }>("micro");
if (micro !== undefined) text = replaced(text, "micro", microPart(micro.cases));
const nnrp = await results<Results>("nnrp");
if (nnrp !== undefined) text = replaced(text, "nnrp", nnrpPart(nnrp));
await writeFile(page, text);
