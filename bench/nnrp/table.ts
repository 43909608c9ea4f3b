import { median } from "../statistics.ts";

/** Measured values by their names, which tell the unit. */
export type Figures = Readonly<Record<string, number>>;

/** A row of a table: who, and the figures of each round. */
export interface Row {
  readonly name: string;
  readonly figures: Figures;
  readonly rounds: Readonly<Record<string, readonly number[]>>;
}

export interface Goal {
  readonly what: string;
  readonly wanted: string;
  readonly measured: number;
  readonly isMet: boolean;
}

export interface Results {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly pair: readonly Row[];
  readonly doors: readonly Row[];
  readonly goals: readonly Goal[];
}

/** Collects what rounds measure. */
export class Rounds {
  readonly #found = new Map<string, Map<string, number[]>>();

  add(name: string, figures: Figures): void {
    const row = this.#found.get(name) ?? new Map<string, number[]>();
    this.#found.set(name, row);
    for (const [figure, value] of Object.entries(figures))
      row.set(figure, [...(row.get(figure) ?? []), rounded(value)]);
  }

  rows(): readonly Row[] {
    return [...this.#found].map(([name, row]) => ({
      name,
      figures: Object.fromEntries([...row].map(([figure, values]) => [figure, median(values)])),
      rounds: Object.fromEntries(row),
    }));
  }
}

/** Median of the rounds' own ratios. */
export function ratioOf(rows: readonly Row[], figure: string, ours: string, theirs: string): number {
  const values = (name: string) => rows.find((row) => row.name === name)?.rounds[figure] ?? [];
  return rounded(median(values(ours).map((value, round) => value / (values(theirs)[round] ?? Number.NaN))));
}

function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/**
 * Rows as Markdown; a second number is the ratio to the row before which it is measured.
 * @param rivalOf the row beside which a row stands
 */
function table(rows: readonly Row[], rivalOf: (name: string) => string | undefined): string {
  const names = [...new Set(rows.flatMap(({ figures }) => Object.keys(figures)))];
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const cell = ({ name, figures }: Row, figure: string): string => {
    const value = figures[figure];
    if (value === undefined) return "";
    const rival = rivalOf(name);
    const ratio = rival === undefined ? Number.NaN : ratioOf(rows, figure, name, rival);
    const shown = value.toLocaleString("en", { maximumSignificantDigits: 3 });
    return Number.isNaN(ratio) ? shown : `${shown} (${ratio.toLocaleString("en", { maximumSignificantDigits: 3 })})`;
  };
  return [
    line(["", ...names]),
    line(["---", ...names.map(() => "---:")]),
    ...rows.map((row) => line([row.name, ...names.map((figure) => cell(row, figure))])),
  ].join("\n");
}

export function pairTable({ pair }: Results): string {
  return table(pair, (name) => (name.startsWith("Plenum") ? name.replace("Plenum", "nnrp-py") : undefined));
}

export function doorTable({ doors }: Results): string {
  return table(doors, (name) => (name === "SSE" ? undefined : "SSE"));
}

export function goalTable({ goals }: Results): string {
  const rows = goals.map(
    ({ what, wanted, measured, isMet }) => `| ${what} | ${wanted} | ${measured} | ${isMet ? "met" : "**not met**"} |`,
  );
  return ["| goal | wanted | measured | |", "| --- | --- | ---: | --- |", ...rows].join("\n");
}
