import type { EmbeddedLogger } from "../options.ts";
import { findBuilds, type GpuBuild, type GpuSetting } from "./builds.ts";
import { type GpuProbe, probeBuild } from "./probe.ts";

export interface ChooseOptions {
  readonly setting: GpuSetting;
  /** Folder of state that holds the builds; undefined: there are none. */
  readonly home: string | undefined;
  readonly logger: EmbeddedLogger;
  /** Ends the search. */
  readonly signal: AbortSignal;
  /** For tests: another try than the real one. */
  readonly probe?: (build: GpuBuild, options: { readonly signal: AbortSignal }) => Promise<GpuProbe>;
}

/**
 * Finds the build that models run on and tells it in one line of the log; without any build, and none asked for, in none.
 * @returns undefined: the processor. Never rejects.
 */
export async function chooseBuild(options: ChooseOptions): Promise<GpuBuild | undefined> {
  const { setting, home, logger, signal, probe = probeBuild } = options;
  if (setting === "off") return undefined;
  const installed = home === undefined ? [] : await findBuilds(home);
  const wanted = installed.filter(({ kind }) => setting === "auto" || kind === setting);
  const reasons: string[] = [];
  for (const { problem, sizeBytes: _, ...build } of wanted) {
    const found = problem === undefined ? await probe(build, { signal }).catch(() => undefined) : undefined;
    if (signal.aborted) return undefined;
    if (found?.loads) {
      logger.info({ build: build.kind, version: build.version, devices: found.devices }, "models run on the GPU");
      return build;
    }
    reasons.push(`${build.kind} ${build.version}: ${problem ?? found?.reason ?? "it can't be tried"}`);
  }
  if (wanted.length === 0 && setting !== "auto") {
    reasons.push(`${setting} is not installed: \`plenum engine add ${setting}\``);
  }
  if (reasons.length > 0) logger.warn({ reasons }, "no GPU build loads; models run on the processor");
  return undefined;
}
