import { NnrpError } from "@plenum/nnrp";
import { chooseRoute, openCarrier } from "@plenum/nnrp/node";
import { type CapabilityDocument, profileName, schemaVersion } from "@plenum/profile";
import { untilSignal } from "../../connection.ts";
import { type ExitCode, exitCodes } from "../../exit-codes.ts";
import { CommandError } from "../../report-error.ts";
import { type Surroundings, withoutControls } from "../../surroundings.ts";
import { loadCapabilities } from "./capability-source.ts";
import { countOutcomes, skippedResult, toResult } from "./case-result.ts";
import { casesFor } from "./cases.ts";
import type { Observation } from "./observe.ts";
import { resultLines } from "./report.ts";
import type { TargetFlags } from "./target-flags.ts";
import { type Run, toVectors } from "./vectors.ts";
import type { Judgement, Target } from "./visit.ts";
import { writeWhole } from "./wire-target.ts";

/** `plenum conformance nnrp run`: judges any service. */
export function judgeTarget(flags: TargetFlags, around: Surroundings): Promise<ExitCode> {
  return untilSignal(around, async (signal) => {
    const target = await reach(flags, around);
    const document = await loadCapabilities({
      endpoint: flags.target,
      target,
      from: flags.capabilities,
      fetch: around.fetch ?? fetch,
    });
    const runs: Run[] = [];
    for (const { id, skip, run } of casesFor(document, flags)) {
      signal.throwIfAborted();
      if (skip === undefined) {
        const judgement = await run(target).catch((error: unknown) => lost(error, runs));
        runs.push({ result: toResult(id, judgement), packets: judgement.packets });
      } else runs.push({ result: skippedResult(id, skip), packets: [] });
    }
    return await tell(runs, document, flags, around);
  }).catch((error: unknown) => {
    if (!(error instanceof NnrpError)) throw error;
    throw new CommandError(`No NNRP service answers at ${flags.target}: ${error.message}.`, exitCodes.unreachable);
  });
}

/** A service that was there before and is gone has failed; one that never answered is told as such. */
function lost(error: unknown, runs: readonly Run[]): Judgement {
  if (!(error instanceof NnrpError) || !runs.some(({ packets }) => packets.length > 0)) throw error;
  const observation: Observation = { events: [], terminal: "error", faults: [] };
  return { observation, problems: [`No connection could be opened: ${error.message}.`], packets: [] };
}

/** The route is chosen once, so that every case goes the same way. */
async function reach(flags: TargetFlags, around: Surroundings): Promise<Target> {
  const token = flags.token ?? around.env["PLENUM_TOKEN"];
  const locator = await chooseRoute(flags.target).catch((error: unknown) => {
    if (error instanceof TypeError) throw new CommandError(`--target: ${error.message}.`, exitCodes.usage);
    throw error;
  });
  return {
    open: (signal) => openCarrier(locator, { signal }),
    timeoutMs: flags.timeout * 1000,
    ...(token ? { token } : {}),
  };
}

async function tell(
  runs: readonly Run[],
  document: CapabilityDocument,
  flags: TargetFlags,
  around: Surroundings,
): Promise<ExitCode> {
  const results = runs.map(({ result }) => result);
  const summary = countOutcomes(results);
  const report = {
    target: flags.target,
    profile: profileName,
    schema_version: schemaVersion,
    compatibility_levels: document.compatibility_levels,
    summary,
    results,
  };
  if (flags.output !== undefined) await writeWhole(flags.output, report);
  if (flags.emitVectors !== undefined) await writeWhole(flags.emitVectors, toVectors(runs));
  if (flags.json) around.output.write(`${JSON.stringify(report, null, 2)}\n`);
  else around.output.write(withoutControls(resultLines(results)));
  return summary.failed === 0 ? exitCodes.ok : exitCodes.failure;
}
