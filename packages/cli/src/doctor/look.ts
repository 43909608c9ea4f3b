import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { ownConfig } from "../own-config.ts";
import type { Surroundings } from "../surroundings.ts";
import type { Check } from "./check.ts";
import { checkLibrary, checkModels } from "./engine.ts";
import { checkGpu } from "./gpu.ts";
import { checkDisk, checkNode, checkProcessor } from "./machine.ts";
import type { DoctorFlags, Places } from "./places.ts";
import { checkRuntimes, checkService } from "./services.ts";
import { checkTokens } from "./tokens.ts";

/** Looks at everything at once. Starts nothing, changes nothing, and waits for nothing longer than some seconds. */
export async function lookAtAll(
  flags: DoctorFlags,
  around: Surroundings,
  version: string,
  signal: AbortSignal,
): Promise<readonly Check[]> {
  const { check, places } = await checkConfiguration(flags, around);
  const groups = await Promise.all([
    checkNode(version),
    check,
    checkService(flags, around, places, version, signal),
    checkRuntimes(places),
    checkTokens(places),
    checkProcessor(),
    checkDisk(places.home),
    checkLibrary(),
    checkGpu(places, signal),
    checkModels(places),
  ]);
  signal.throwIfAborted();
  return groups.flat();
}

async function checkConfiguration(
  flags: DoctorFlags,
  around: Surroundings,
): Promise<{ readonly check: Check; readonly places: Places }> {
  try {
    const config = await ownConfig(flags, around);
    const { file, home, models, host, port } = config;
    const detail = file === undefined ? "Configuration: no file, all defaults" : `Configuration: ${file} is valid`;
    const check = { id: "configuration", state: "ok", detail, data: { file: file ?? null } } as const;
    return { check, places: { home, models, host, port, config } };
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ConfigError") throw error;
    const check = {
      id: "configuration",
      state: "problem",
      detail: "Configuration: it can't be used, and the service does not start",
      lines: error.message.split("\n"),
      todo: ["change what the lines name; docs/reference/configuration.md lists all options"],
    } as const;
    return { check, places: placesWithout(flags, around) };
  }
}

function placesWithout({ home }: DoctorFlags, { env }: Surroundings): Places {
  const folder = resolve(home ?? (env["PLENUM_HOME"] || join(env["HOME"] || homedir(), ".plenum")));
  const models = resolve(env["PLENUM_MODELS"] || join(folder, "models"));
  // A wrong number is what the configuration's problem tells.
  const port = /^\d{1,5}$/.test(env["PLENUM_PORT"] ?? "") ? Number(env["PLENUM_PORT"]) : 7411;
  return { home: folder, models, host: env["PLENUM_HOST"] || "127.0.0.1", port, config: undefined };
}
