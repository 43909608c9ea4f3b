import type { Surroundings } from "../surroundings.ts";
import { withoutControls } from "../surroundings.ts";

/** One thing that was looked at. */
export interface Check {
  /** Stays the same from version to version. */
  readonly id: string;
  /** `ok`; `note`: worth knowing; `problem`: something must be done. */
  readonly state: "ok" | "note" | "problem";
  /** What was found, in a line. */
  readonly detail: string;
  /** Further lines. */
  readonly lines?: readonly string[];
  /** Command lines to type, or edits to make, each whole. */
  readonly todo?: readonly string[];
  /** For programs; sizes in bytes. */
  readonly data?: Readonly<Record<string, unknown>>;
}

const signs = {
  drawn: { ok: "✔", note: "!", problem: "✖", todo: "→" },
  plain: { ok: "ok", note: "!", problem: "x", todo: "->" },
} as const;

/** The list as people read it; in plain ASCII signs where no terminal draws them or NO_COLOR is set. */
export function checklist(checks: readonly Check[], { output, env }: Pick<Surroundings, "output" | "env">): string {
  const set = output.isTerminal && !env["NO_COLOR"] ? signs.drawn : signs.plain;
  const width = Math.max(...Object.values(set).map((sign) => sign.length));
  const indent = " ".repeat(width + 1);
  const text = checks.flatMap(({ state, detail, lines = [], todo = [] }) => [
    `${set[state].padEnd(width)} ${detail}`,
    ...lines.map((line) => `${indent}  ${line}`),
    ...todo.map((line) => `${indent}  ${set.todo} ${line}`),
  ]);
  return withoutControls(text.map((line) => `${line}\n`).join(""));
}

/** A check's ending sentence. */
export function verdict(checks: readonly Check[]): string {
  const problems = checks.filter(({ state }) => state === "problem").length;
  if (problems === 0) return "Nothing must be done.\n";
  return problems === 1 ? "One thing must be done.\n" : `${problems} things must be done.\n`;
}

/** Bytes as people read them. */
export function sizeText(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`;
}
