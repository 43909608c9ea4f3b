import { resolve } from "node:path";
import type { Command } from "commander";
import { writeJson } from "../connection.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { ownConfig, type PlaceFlags, withPlaces } from "../own-config.ts";
import { CommandError } from "../report-error.ts";
import type { Surroundings } from "../surroundings.ts";
import { table } from "../table.ts";

interface RepairFlags extends PlaceFlags {
  readonly file?: string;
  readonly json?: boolean;
}

/** Adds `plenum store repair`. */
export function addStore(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const store = program
    .command("store")
    .summary("mend the service's database")
    .description("Looks after the database in which a service keeps responses, tasks and tokens.");
  withPlaces(store.command("repair"))
    .summary("save what can be read of a damaged database")
    .description(
      "Makes a new database of what can be read of a damaged one, which is moved aside and never deleted. Stop the service " +
        "first: a database in use is refused.",
    )
    .option("--file <file>", "the database (default: that of the configuration)")
    .option("--json", "print what was saved as JSON")
    .addHelpText("after", "\nExamples:\n  plenum store repair\n  plenum store repair --file /srv/plenum/plenum.db")
    .action(async (flags: RepairFlags) => done(await repair(flags, around)));
}

async function repair(flags: RepairFlags, around: Surroundings): Promise<ExitCode> {
  const { repairSqlite } = await import("@plenum/server");
  const file = resolve(flags.file ?? (await ownConfig(flags, around)).store.path);
  const report = await repairSqlite(file).catch((error: unknown) => {
    throw new CommandError(error instanceof Error ? error.message : String(error));
  });
  if (flags.json) {
    writeJson(around, report);
    return exitCodes.ok;
  }
  const rows = Object.entries(report.salvaged).map(([name, count]) => [name, String(count)]);
  around.output.write(table([["TABLE", "ROWS SAVED"], ...rows]));
  const loss = report.isComplete ? "Everything could be read." : "Something could not be read and is lost.";
  around.output.write(`\n${loss} The damaged file is ${report.movedTo}.\n`);
  return exitCodes.ok;
}
