import type { Case, Facts } from "./case.ts";
import type { Probe } from "./probe.ts";

export interface CaseResult {
  readonly id: string;
  /** Section of LMSP. */
  readonly section: string;
  readonly outcome: "passed" | "failed" | "skipped";
  /** What is wrong, or why it was skipped. */
  readonly problems: readonly string[];
}

/** A service that sends nonsense by the thousand is told of a few. */
const mostProblems = 10;

/** Runs one case; what it throws is a problem of the service. */
export async function runCase({ id, section, skip, run }: Case, probe: Probe, facts: Facts): Promise<CaseResult> {
  const reason = skip?.(facts);
  if (reason !== undefined) return { id, section, outcome: "skipped", problems: [reason] };
  const problems: string[] = [];
  const report = (problem: string): void => {
    if (problems.length < mostProblems) problems.push(problem);
  };
  const expect = (holds: boolean, problem: string): void => {
    if (!holds) report(problem);
  };
  try {
    await run({ probe, facts, model: facts.model ?? "", report, expect });
  } catch (error) {
    report(error instanceof Error ? `${error.message}${causeOf(error)}` : String(error));
  }
  return { id, section, outcome: problems.length === 0 ? "passed" : "failed", problems };
}

function causeOf({ cause }: Error): string {
  return cause instanceof Error ? ` (${cause.message})` : "";
}

/** How many of each outcome. */
export function countOutcomes(results: readonly CaseResult[]): Readonly<Record<CaseResult["outcome"], number>> {
  const count = (outcome: CaseResult["outcome"]) => results.filter((result) => result.outcome === outcome).length;
  return { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}
