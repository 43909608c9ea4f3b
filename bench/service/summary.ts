import { median } from "../statistics.ts";
import type { Goal } from "./goals.ts";
import type { Workload } from "./workloads.ts";

/** What the load client prints; figures are found by their paths. */
export interface LoadResult {
  readonly errors?: number;
  readonly error_samples?: readonly string[];
  readonly [name: string]: unknown;
}

export interface Run {
  readonly workload: string;
  readonly target: string;
  readonly round: number;
  /** The machine's load average. */
  readonly load: number;
  readonly result: LoadResult;
}

interface Row {
  readonly workload: string;
  readonly title: string;
  readonly target: string;
  readonly figures: Readonly<Record<string, number>>;
  /** Rounds of each figure. */
  readonly rounds: Readonly<Record<string, readonly number[]>>;
  readonly errors: number;
}

interface Outcome extends Goal {
  /** The median of the rounds' own ratios, or of the figure. */
  readonly measured: number;
  readonly isMet: boolean;
}

export interface Summary {
  readonly load: readonly [least: number, most: number];
  readonly rows: readonly Row[];
  readonly goals: readonly Outcome[];
}

/** @param path names joined by dots */
export function figureOf(result: LoadResult, path: string): number | undefined {
  let value: unknown = result;
  for (const name of path.split(".")) {
    value = typeof value === "object" && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
  }
  return typeof value === "number" ? value : undefined;
}

export function summarise(runs: readonly Run[], workloads: readonly Workload[], goals: readonly Goal[]): Summary {
  const roundsOf = (workload: string, target: string, figure: string): number[] =>
    runs.flatMap((run) => {
      const value = figureOf(run.result, figure);
      return run.workload === workload && run.target === target && value !== undefined ? [value] : [];
    });
  const rows = workloads.flatMap(({ name, title, figures }) =>
    [...new Set(runs.filter(({ workload }) => workload === name).map(({ target }) => target))].map((target): Row => {
      const rounds = Object.fromEntries(figures.map((figure) => [figure, roundsOf(name, target, figure)]));
      const own = runs.filter((run) => run.workload === name && run.target === target);
      return {
        workload: name,
        title,
        target,
        figures: Object.fromEntries(Object.entries(rounds).map(([figure, values]) => [figure, median(values)])),
        rounds,
        errors: own.reduce((sum, { result }) => sum + (result.errors ?? 0), 0),
      };
    }),
  );
  const outcomes = goals.flatMap((goal): Outcome[] => {
    const ours = roundsOf(goal.workload, "plenum", goal.figure);
    const { against } = goal;
    const theirs = against && roundsOf(against.workload ?? goal.workload, against.target, goal.figure);
    if (ours.length === 0 || theirs?.length === 0) return [];
    const values = theirs === undefined ? ours : ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
    const measured = median(values);
    return [{ ...goal, measured, isMet: measured <= goal.atMost }];
  });
  const loads = runs.map(({ load }) => load);
  return { load: [Math.min(...loads), Math.max(...loads)], rows, goals: outcomes };
}

/** What was measured now, and of what was not the earlier figures. */
export function merge(earlier: Summary | undefined, now: Summary): Summary {
  const measured = new Set(now.rows.map(({ workload }) => workload));
  const kept = <T extends { readonly workload: string }>(rows: readonly T[] = []): T[] =>
    rows.filter(({ workload }) => !measured.has(workload));
  return {
    load: now.load,
    rows: [...kept(earlier?.rows), ...now.rows],
    goals: [...kept(earlier?.goals), ...now.goals],
  };
}

/** Tables as Markdown. */
export function table({ rows, goals, load }: Summary): string {
  const parts = [`Load average ${load[0].toFixed(1)} to ${load[1].toFixed(1)}.`];
  for (const workload of new Set(rows.map((row) => row.workload))) {
    const own = rows.filter((row) => row.workload === workload);
    const figures = Object.keys(own[0]?.figures ?? {});
    parts.push(
      `\n**${workload}**: ${own[0]?.title}\n`,
      `| target | ${figures.map(shortName).join(" | ")} | errors |`,
      `| --- |${" ---: |".repeat(figures.length + 1)}`,
      ...own.map(
        (row) => `| ${row.target} | ${figures.map((name) => told(row.figures[name])).join(" | ")} | ${row.errors} |`,
      ),
    );
  }
  parts.push("\n| goal | wanted | measured | |", "| --- | ---: | ---: | --- |");
  for (const { workload, figure, against, atMost, measured, isMet } of goals) {
    const other = against === undefined ? "" : ` / ${against.workload ?? against.target}`;
    parts.push(
      `| ${workload}: ${shortName(figure)}${other} | ≤ ${told(atMost)} | ${told(measured)} | ${isMet ? "met" : "**not met**"} |`,
    );
  }
  return parts.join("\n");
}

function shortName(figure: string): string {
  return figure.replace(/^(sut|idle|cancel)\.(sut\.)?/, "");
}

/** Null is what JSON makes of a figure that a target does not have. */
function told(value: number | null | undefined): string {
  return value == null || Number.isNaN(value) ? "–" : Number(value.toPrecision(4)).toLocaleString("en");
}
