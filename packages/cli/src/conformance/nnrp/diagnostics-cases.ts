import { type Diagnostics, readDiagnostics, writeDiagnostics } from "@plenum/profile";
import type { Case } from "./case.ts";
import { compare } from "./expectation.ts";
import type { Observation } from "./observe.ts";
import { toEnvelope } from "./profile-case.ts";
import { visit } from "./visit.ts";

/** One of each, to know their names on the wire. */
const sample: Required<Diagnostics> = {
  requestId: "x",
  responseId: "x",
  runtime: "x",
  transport: "x",
  queuePosition: 0,
  queueDelayMs: 0,
  ttftMs: 0,
  traceparent: "t",
  retryReason: "x",
  retryAfterMs: 0,
  cachedInputTokens: 0,
  flowPressure: "none",
};

const knownNames = Object.keys(writeDiagnostics(sample));

/** What `nnrp.diagnostics` is good for (profile §11). */
export function diagnosticsCases(model: string, claims: ReadonlySet<string>): readonly Case[] {
  const isStreamed = claims.has("api.streaming");
  const body = { model, messages: [{ role: "user", content: "Say hello." }], stream: isStreamed };
  const ask = (id: string, diagnostics: unknown, judge: (observation: Observation) => readonly string[]): Case => ({
    id: `diagnostics.${id}`,
    run: (target) =>
      visit(target, async (visited) => {
        const observation = await visited.ask(
          toEnvelope(target, "chat.completions.create", body, diagnostics === undefined ? {} : { diagnostics }),
        );
        for (const problem of judge(observation)) visited.report(problem);
        return observation;
      }),
  });
  return [
    ask("reported", true, (observation) => [
      ...compare({ terminal: "success", events: [expected("response.diagnostics")] }, observation),
      ...wrongMembers(observation),
    ]),
    ask("unrequested", undefined, (observation) => [
      ...compare({ terminal: "success", events: [] }, observation),
      ...(observation.events.some(({ type }) => type === "response.diagnostics")
        ? ["response.diagnostics came although nobody asked for it."]
        : []),
    ]),
    ask("malformed", "yes", (observation) =>
      compare(
        {
          terminal: "error",
          events: [{ ...expected("response.error"), fields: { error: { code: "invalid_nnrp_policy" } } }],
        },
        observation,
      ),
    ),
  ];
}

function expected(type: string) {
  return { type, minCount: 1, fields: {} };
}

/** Unknown members are welcome, known ones have a form. */
function wrongMembers({ events }: Observation): readonly string[] {
  return events.flatMap(({ type, diagnostics }) => {
    if (type !== "response.diagnostics" || typeof diagnostics !== "object" || diagnostics === null) return [];
    const told = diagnostics as Readonly<Record<string, unknown>>;
    const good = writeDiagnostics(readDiagnostics(told));
    return knownNames
      .filter((name) => told[name] !== undefined && good[name] === undefined)
      .map((name) => `The diagnostics' ${name} is of no form that it may have.`);
  });
}
