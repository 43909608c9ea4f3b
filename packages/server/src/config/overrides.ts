import { isRecord } from "./config-document.ts";

/** What stands over the file: flags of `plenum serve`. Absent ones leave the value below them. */
export interface ConfigFlags {
  readonly config?: string;
  readonly home?: string;
  readonly models?: string;
  readonly host?: string;
  /** As typed; checked like the file's. */
  readonly port?: string | number;
  /** Addresses, each as typed. */
  readonly nnrp?: readonly string[];
  readonly starterModel?: boolean;
  readonly localRuntimes?: boolean;
  readonly logLevel?: string;
  readonly logFormat?: string;
  readonly insecureOpen?: boolean;
}

/** The process's environment, with the variables that the configuration reads. */
export interface Environment {
  readonly [variable: string]: string | undefined;
  readonly HOME?: string | undefined;
  readonly PLENUM_HOME?: string | undefined;
  readonly PLENUM_CONFIG?: string | undefined;
  /** Token of the hub that models are pulled from. */
  readonly HF_TOKEN?: string | undefined;
}

/** A value that takes the place of the file's, and who set it. */
export interface Override {
  readonly path: readonly string[];
  readonly value: unknown;
  /** What an error calls it: `--port`, `PLENUM_PORT`. */
  readonly origin: string;
}

interface OverrideSource {
  readonly path: readonly string[];
  readonly flag: Exclude<keyof ConfigFlags, "config">;
  readonly flagName: string;
  readonly variable?: string;
}

/** Every option that a flag or a variable can set; `PLENUM_CONFIG` and `--config` name the file itself. */
export const overrideSources: readonly OverrideSource[] = [
  { path: ["home"], flag: "home", flagName: "--home", variable: "PLENUM_HOME" },
  { path: ["models"], flag: "models", flagName: "--models", variable: "PLENUM_MODELS" },
  { path: ["host"], flag: "host", flagName: "--host", variable: "PLENUM_HOST" },
  { path: ["port"], flag: "port", flagName: "--port", variable: "PLENUM_PORT" },
  { path: ["nnrp", "listen"], flag: "nnrp", flagName: "--nnrp" },
  { path: ["log", "level"], flag: "logLevel", flagName: "--log-level", variable: "PLENUM_LOG_LEVEL" },
  { path: ["log", "format"], flag: "logFormat", flagName: "--log-format", variable: "PLENUM_LOG_FORMAT" },
  { path: ["starter_model"], flag: "starterModel", flagName: "--no-starter-model" },
  {
    path: ["find_local_runtimes"],
    flag: "localRuntimes",
    flagName: "--no-local-runtimes",
    variable: "PLENUM_LOCAL_RUNTIMES",
  },
  { path: ["insecure_open"], flag: "insecureOpen", flagName: "--insecure-open" },
];

/** Flags win over variables; an empty variable counts as absent. */
export function collectOverrides(flags: ConfigFlags, env: Environment): readonly Override[] {
  const overrides: Override[] = [];
  for (const source of overrideSources) {
    const fromFlag = flags[source.flag];
    const fromEnvironment = source.variable === undefined ? undefined : env[source.variable];
    if (fromFlag !== undefined) {
      overrides.push({ path: source.path, value: readValue(source, fromFlag), origin: source.flagName });
    } else if (fromEnvironment !== undefined && fromEnvironment !== "" && source.variable !== undefined) {
      overrides.push({ path: source.path, value: readValue(source, fromEnvironment), origin: source.variable });
    }
  }
  return overrides;
}

const truths: ReadonlyMap<unknown, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

/** A text as what its option holds; one that has not the form stays text, so that the schema's own words refuse it. */
function readValue<T extends string | number | boolean | readonly string[]>(
  source: OverrideSource,
  value: T,
): T | number | boolean {
  if (source.flag === "localRuntimes") return truths.get(value) ?? value;
  return source.flag === "port" && typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
}

/** The file's data with the overrides put in. */
export function applyOverrides(
  data: Readonly<Record<string, unknown>>,
  overrides: readonly Override[],
): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...data };
  for (const { path, value } of overrides) {
    const [section, key] = path;
    if (section === undefined) continue;
    if (key === undefined) {
      merged[section] = value;
      continue;
    }
    const below = merged[section];
    // A section that is not a mapping stays, so that the error about it is about the file.
    if (below === undefined || isRecord(below)) merged[section] = { ...below, [key]: value };
  }
  return merged;
}
