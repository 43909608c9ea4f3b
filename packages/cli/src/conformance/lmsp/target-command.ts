import { writeFile } from "node:fs/promises";
import { normalizeBaseUrl } from "@plenum/client";
import { untilSignal, writeJson } from "../../connection.ts";
import { type ExitCode, exitCodes } from "../../exit-codes.ts";
import { createProgressBar } from "../../progress-bar.ts";
import { CommandError } from "../../report-error.ts";
import { type Surroundings, withoutControls } from "../../surroundings.ts";
import { countOutcomes } from "./case-result.ts";
import { cases } from "./cases.ts";
import { judge } from "./judge.ts";
import { resultLines } from "./report.ts";
import type { TargetFlags } from "./target-flags.ts";

/** `plenum conformance lmsp`: judges any service. */
export function judgeService(url: string, flags: TargetFlags, around: Surroundings): Promise<ExitCode> {
  const bar = createProgressBar(around.errors);
  const baseUrl = normalizeBaseUrl(url);
  let done = 0;
  return untilSignal(around, async (signal) => {
    const results = await judge({
      baseUrl,
      token: flags.token ?? (around.env["PLENUM_TOKEN"] || undefined),
      otherToken: flags.otherToken,
      model: flags.model,
      timeoutMs: flags.timeout * 1000,
      only: flags.only,
      signal,
      onResult: () => {
        done += 1;
        if (around.errors.isTerminal) bar.update({ label: "judging", done, total: cases.length, unit: "cases" });
      },
    }).finally(() => {
      if (done > 0) bar.end();
    });
    const summary = countOutcomes(results);
    const report = { target: baseUrl, protocol: "lmsp/1.0", summary, results };
    if (flags.output !== undefined) await writeFile(flags.output, `${JSON.stringify(report, null, 2)}\n`);
    if (flags.json) writeJson(around, report);
    else around.output.write(withoutControls(resultLines(results)));
    return summary.failed === 0 ? exitCodes.ok : exitCodes.failure;
  }).catch((error: unknown) => {
    if (!(error instanceof TypeError)) throw error;
    throw new CommandError(`No service answers at ${baseUrl}.`, exitCodes.unreachable);
  });
}
