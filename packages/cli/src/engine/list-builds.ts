import type { Config, GpuKind, InstalledBuild } from "@plenum/server";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { CommandError } from "../report-error.ts";
import type { Surroundings } from "../surroundings.ts";
import { table } from "../table.ts";

interface OutputFlags {
  readonly json?: boolean;
}

/** Writes the builds that exist for this machine and those that are installed. */
export async function listBuilds({ home }: Config, flags: OutputFlags, around: Surroundings): Promise<ExitCode> {
  const { availableKinds, findBuilds, missingKind, pinnedVersion } = await import("@plenum/server");
  const installed = await findBuilds(home);
  const missing = availableKinds().filter(
    (kind) => !installed.some((build) => build.kind === kind && build.version === pinnedVersion),
  );
  const builds = [
    ...installed.map(buildJson),
    ...missing.map((kind) => ({ kind, version: pinnedVersion, installed: false })),
  ];
  if (flags.json) around.output.write(`${JSON.stringify({ engine: pinnedVersion, builds }, null, 2)}\n`);
  else if (builds.length === 0) around.errors.write(`${missingKind("for graphics processors")}\n`);
  else {
    const rows = [
      ...installed.map((build) => [
        build.kind,
        build.version,
        build.problem ?? "installed",
        megabytes(build),
        build.folder,
      ]),
      ...missing.map((kind) => [kind, pinnedVersion, `not installed: plenum engine add ${kind}`]),
    ];
    around.output.write(table([["BUILD", "VERSION", "STATE", "SIZE", "FOLDER"], ...rows]));
  }
  return exitCodes.ok;
}

/** Removes every version of a kind. */
export async function removeBuilds(
  kind: GpuKind,
  { home }: Config,
  flags: OutputFlags,
  around: Surroundings,
): Promise<ExitCode> {
  const { findBuilds, removeBuild } = await import("@plenum/server");
  const builds = (await findBuilds(home)).filter((build) => build.kind === kind);
  if (builds.length === 0) throw new CommandError(`The GPU build ${kind} is not installed.`);
  for (const build of builds) await removeBuild(build);
  if (flags.json) around.output.write(`${JSON.stringify({ removed: builds.map(buildJson) }, null, 2)}\n`);
  else
    for (const build of builds) around.output.write(`Removed ${build.kind} ${build.version} (${megabytes(build)}).\n`);
  return exitCodes.ok;
}

function buildJson({ sizeBytes, ...build }: InstalledBuild): object {
  return { ...build, size_bytes: sizeBytes, installed: true };
}

function megabytes({ sizeBytes }: InstalledBuild): string {
  return `${Math.round(sizeBytes / 1e6)} MB`;
}
