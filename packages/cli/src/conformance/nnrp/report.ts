import { table } from "../../table.ts";
import { type CaseResult, countOutcomes } from "./case-result.ts";

const words = { passed: "ok", failed: "FAILED", skipped: "skipped" } as const;

/** A line for each case, and how many of each outcome. */
export function resultLines(results: readonly CaseResult[]): string {
  const rows = results.map(({ id, outcome, events, terminal, message }) => [
    words[outcome],
    id,
    outcome === "passed" ? `${events.length} ${events.length === 1 ? "event" : "events"}, ${terminal}` : message,
  ]);
  const { passed, failed, skipped } = countOutcomes(results);
  return `${table(rows)}\n${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}
