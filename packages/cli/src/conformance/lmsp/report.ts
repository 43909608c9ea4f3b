import { table } from "../../table.ts";
import { type CaseResult, countOutcomes } from "./case-result.ts";

const words = { passed: "ok", failed: "FAILED", skipped: "skipped" } as const;

/** A line for each case with what is wrong below it, and how many of each outcome. */
export function resultLines(results: readonly CaseResult[]): string {
  const rows = results.flatMap(({ id, section, outcome, problems }) => {
    const [first = "", ...others] = problems;
    return [[words[outcome], id, section, first], ...others.map((problem) => ["", "", "", problem])];
  });
  const { passed, failed, skipped } = countOutcomes(results);
  return `${table(rows)}\n${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}
