import type { JsonObject } from "@plenum/profile";
import type { Event, Terminal } from "./observe.ts";
import type { Judgement } from "./visit.ts";

/** One result, in the spelling of the outside suite's `api-profile-case-results` schema. */
export interface CaseResult {
  readonly id: string;
  readonly outcome: "passed" | "failed" | "skipped";
  readonly terminal: Terminal;
  readonly events: readonly Event[];
  /** All that `response.diagnostics` told. */
  readonly diagnostics: JsonObject;
  /** Why it failed or was skipped; empty else. */
  readonly message: string;
}

export function toResult(id: string, { observation, problems }: Judgement): CaseResult {
  const { events, terminal } = observation;
  return {
    id,
    outcome: problems.length === 0 ? "passed" : "failed",
    terminal,
    events,
    diagnostics: diagnosticsIn(events),
    message: problems.join(" "),
  };
}

/** Its terminal says nothing. */
export function skippedResult(id: string, message: string): CaseResult {
  return { id, outcome: "skipped", terminal: "error", events: [], diagnostics: {}, message };
}

function diagnosticsIn(events: readonly Event[]): JsonObject {
  const told = events.flatMap(({ diagnostics }) =>
    typeof diagnostics === "object" && diagnostics !== null ? [diagnostics] : [],
  );
  return Object.assign({}, ...told);
}

/** How many of each outcome. */
export function countOutcomes(results: readonly CaseResult[]): Readonly<Record<CaseResult["outcome"], number>> {
  const count = (outcome: CaseResult["outcome"]) => results.filter((result) => result.outcome === outcome).length;
  return { passed: count("passed"), failed: count("failed"), skipped: count("skipped") };
}
