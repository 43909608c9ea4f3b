import { createConformanceService } from "@plenum/server/conformance";
import { type ExitCode, exitCodes } from "../../exit-codes.ts";
import { CommandError } from "../../report-error.ts";
import { type Surroundings, withoutControls } from "../../surroundings.ts";
import { readProfilePlan, runProfilePlan, targetOf } from "./api-profile.ts";
import { type ApiProfileFlags, planVariable, resultsVariable } from "./api-profile-flags.ts";
import { countOutcomes } from "./case-result.ts";
import { readJsonFile } from "./read-json-file.ts";
import { resultLines } from "./report.ts";
import { writeWhole } from "./wire-target.ts";

const caseTimeoutMs = 30_000;

/** `plenum conformance nnrp api-profile`: a plan of the outside suite against this service's own door. */
export async function apiProfile(flags: ApiProfileFlags, around: Surroundings): Promise<ExitCode> {
  const planPath = flags.plan ?? around.env[planVariable];
  const output = flags.output ?? around.env[resultsVariable];
  if (!planPath) throw new CommandError(`Name the plan with --plan or ${planVariable}.`, exitCodes.usage);
  if (!output) {
    throw new CommandError(`Name the file for the results with --output or ${resultsVariable}.`, exitCodes.usage);
  }
  const plan = await readJsonFile(planPath, readProfilePlan);
  const service = createConformanceService();
  try {
    const results = await runProfilePlan(plan, await targetOf(service, caseTimeoutMs));
    await writeWhole(output, results);
    if (flags.json) around.output.write(`${JSON.stringify(results, null, 2)}\n`);
    else around.output.write(withoutControls(resultLines(results.results)));
    return countOutcomes(results.results).failed === 0 ? exitCodes.ok : exitCodes.failure;
  } finally {
    await service.close();
  }
}
