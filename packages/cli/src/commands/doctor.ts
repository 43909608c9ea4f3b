import type { Command } from "commander";
import { untilSignal, withConnection, writeJson } from "../connection.ts";
import { checklist, verdict } from "../doctor/check.ts";
import { lookAtAll } from "../doctor/look.ts";
import type { DoctorFlags } from "../doctor/places.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withPlaces } from "../own-config.ts";
import type { Surroundings } from "../surroundings.ts";

/** Adds `plenum doctor`. */
export function addDoctor(
  program: Command,
  around: Surroundings,
  version: string,
  done: (code: ExitCode) => void,
): void {
  withPlaces(withConnection(program.command("doctor")))
    .summary("check this machine and what runs on it")
    .description(
      "Looks at Node, configuration, the service, other runtimes, tokens, processor, memory, disk, GPU, engine builds and " +
        "models, and says what is missing and what to type. It starts and changes nothing, and works with and without a " +
        "running service. Exit code 1: something must be done.",
    )
    .option("--json", "print what was found as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum doctor
  plenum doctor --config plenum.config.yaml
  plenum doctor --json | jq '.checks[] | select(.state != "ok")'`,
    )
    .action(async (flags: DoctorFlags) => done(await doctor(flags, around, version)));
}

function doctor(flags: DoctorFlags, around: Surroundings, version: string): Promise<ExitCode> {
  return untilSignal(around, async (signal) => {
    const checks = await lookAtAll(flags, around, version, signal);
    const isWell = checks.every(({ state }) => state !== "problem");
    if (flags.json) writeJson(around, { ok: isWell, checks });
    else around.output.write(checklist(checks, around) + verdict(checks));
    return isWell ? exitCodes.ok : exitCodes.failure;
  });
}
