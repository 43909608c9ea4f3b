import type { Command } from "commander";
import { untilSignal } from "../connection.ts";
import { addBuild } from "../engine/add-build.ts";
import { listBuilds, removeBuilds } from "../engine/list-builds.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { ownConfig, type PlaceFlags, withPlaces } from "../own-config.ts";
import { CommandError } from "../report-error.ts";
import type { Surroundings } from "../surroundings.ts";

interface EngineFlags extends PlaceFlags {
  readonly json?: boolean;
}

/** Adds `plenum engine add`, `list` and `remove`. */
export function addEngine(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  const engine = program
    .command("engine")
    .summary("install the engine's GPU builds")
    .description("Installs, lists and removes builds of the embedded engine for graphics processors.");
  const kind = ["<kind>", "cuda (NVIDIA) or vulkan (NVIDIA, AMD, Intel)"] as const;
  withPlaces(engine.command("add"))
    .summary("install a GPU build")
    .description(
      "Installs the build that belongs to this Plenum's engine with npm, in the folder of all state, and tries it. The " +
        "service uses it from its next start on; where it does not load, models run on the processor.",
    )
    .argument(...kind)
    .option("--json", "print the build and what came of the try as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum engine add cuda       564 MB; needs NVIDIA's driver and the CUDA 13 runtime, or CUDA 12
  plenum engine add vulkan     74 MB; needs a driver with Vulkan`,
    )
    .action(async (name: string, flags: EngineFlags) => done(await add(name, flags, around)));
  withPlaces(engine.command("list"))
    .summary("list the GPU builds")
    .description("Lists the builds that exist for this machine and those that are installed.")
    .option("--json", "print the list as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum engine list
  plenum engine list --json | jq '.builds[] | select(.installed)'`,
    )
    .action(async (flags: EngineFlags) => done(await listBuilds(await ownConfig(flags, around), flags, around)));
  withPlaces(engine.command("remove"))
    .summary("remove a GPU build")
    .description("Removes every version of a build from the disk. A service that runs keeps what it has loaded.")
    .argument(...kind)
    .option("--json", "print what was removed as JSON")
    .addHelpText("after", "\nExamples:\n  plenum engine remove vulkan")
    .action(async (name: string, flags: EngineFlags) => {
      done(await removeBuilds(await knownKind(name), await ownConfig(flags, around), flags, around));
    });
}

async function add(name: string, flags: EngineFlags, around: Surroundings): Promise<ExitCode> {
  const kind = await knownKind(name);
  const config = await ownConfig(flags, around);
  return untilSignal(around, (signal) => addBuild({ kind, config, isJson: flags.json === true, around, signal }));
}

async function knownKind(name: string) {
  const { gpuKinds, missingKind } = await import("@plenum/server");
  const kind = gpuKinds.find((known) => known === name);
  if (kind === undefined) throw new CommandError(missingKind(name), exitCodes.usage);
  return kind;
}
