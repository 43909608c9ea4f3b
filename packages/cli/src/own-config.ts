import type { Config } from "@plenum/server";
import type { Command } from "commander";
import type { Surroundings } from "./surroundings.ts";

export interface PlaceFlags {
  readonly config?: string;
  readonly home?: string;
}

/** Adds the flags of commands that look at this machine's own configuration and state. */
export function withPlaces(command: Command): Command {
  return command
    .option("--config <file>", "configuration file (PLENUM_CONFIG; default ./plenum.config.yaml)")
    .option("--home <folder>", "folder of all state (PLENUM_HOME; default ~/.plenum)");
}

/**
 * The configuration that `plenum serve` would run with here.
 * @throws ConfigError
 */
export async function ownConfig({ config, home }: PlaceFlags, around: Surroundings): Promise<Config> {
  const { loadConfig } = await import("@plenum/server");
  const flags = { ...(config !== undefined && { config }), ...(home !== undefined && { home }) };
  return loadConfig({ flags, env: around.env, isTerminal: around.output.isTerminal });
}
