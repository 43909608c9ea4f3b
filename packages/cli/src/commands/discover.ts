import type { Command } from "commander";
import { untilSignal, writeJson } from "../connection.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { wholeWithin } from "../read-number.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { table } from "../table.ts";

interface DiscoverFlags {
  readonly seconds: number;
  readonly json?: boolean;
}

/** Adds `plenum discover`. */
export function addDiscover(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  program
    .command("discover")
    .summary("find services on the local network")
    .description(
      "Looks for LMSP services on the local network by mDNS. Each is asked for its own document, so that only what answers " +
        "for itself is listed. A service announces itself when it listens beyond its own machine.",
    )
    .option("--seconds <number>", "how long to look, 1 … 60", wholeWithin(1, 60), 3)
    .option("--json", "print what was found as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  plenum discover\n  plenum discover --seconds 10 --json | jq -r '.data[].baseUrl'",
    )
    .action(async (flags: DiscoverFlags) => done(await find(flags, around)));
}

async function find({ seconds, json }: DiscoverFlags, around: Surroundings): Promise<ExitCode> {
  const { discover } = await import("@plenum/client/node");
  return untilSignal(around, async (signal) => {
    if (around.errors.isTerminal) around.errors.write(`Looking for ${seconds} s …\n`);
    const found = await discover({ timeoutMs: seconds * 1000, signal });
    if (json) writeJson(around, { data: found });
    else if (found.length === 0) {
      around.errors.write(
        "Nothing was found. A service must listen beyond its own machine: plenum serve --host 0.0.0.0\n",
      );
    } else {
      const rows = found.map(({ name, baseUrl, auth, kinds, id }) => [name, baseUrl, auth, kinds.join(","), id]);
      around.output.write(withoutControls(table([["NAME", "ADDRESS", "AUTH", "INTERFACES", "ID"], ...rows])));
    }
    return exitCodes.ok;
  });
}
