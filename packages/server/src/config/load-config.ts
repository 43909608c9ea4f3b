import { readFile } from "node:fs/promises";
import { homedir, hostname } from "node:os";
import { join, resolve } from "node:path";
import type { Config } from "./config.ts";
import { type ConfigDocument, parseConfigDocument } from "./config-document.ts";
import { ConfigError } from "./config-error.ts";
import { explainIssues, showPath } from "./explain-issues.ts";
import { listenPlace } from "./nnrp-schema.ts";
import { applyOverrides, type ConfigFlags, collectOverrides, type Environment, type Override } from "./overrides.ts";
import { type ConfigFile, configSchema } from "./schema.ts";
import { toConfig } from "./to-config.ts";
import { runtimeMistakes } from "./to-runtimes.ts";

/** Name of the file that is looked for in the working folder and in the home folder. */
const configFileName = "plenum.config.yaml";

export interface LoadConfigOptions {
  /** Flags of the command line; they win over everything. */
  readonly flags: ConfigFlags;
  /** What a command sets whatever the file says; it wins over the flags. @default nothing */
  readonly preset?: readonly Override[];
  /** Environment; it wins over the file. */
  readonly env: Environment;
  /** Folder that relative flags and variables count from. Default: the process's. */
  readonly cwd?: string;
  /** Whether a person reads the log: decides its format where nothing else does. Default: standard output is a terminal. */
  readonly isTerminal?: boolean;
}

interface FoundFile {
  readonly path: string;
  readonly document: ConfigDocument;
}

/**
 * Reads the configuration: defaults, then `--config`, `PLENUM_CONFIG` or `plenum.config.yaml` in the working folder or
 * the home folder, then environment, then flags.
 * @throws ConfigError with one line for each mistake.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<Config> {
  const cwd = options.cwd ?? process.cwd();
  const found = await findFile(options, cwd);
  const overrides = [...collectOverrides(options.flags, options.env), ...(options.preset ?? [])];
  const data = applyOverrides(found?.document.data ?? {}, overrides);
  const parsed = configSchema.safeParse(data);
  const document = found?.document;
  if (!parsed.success) throw new ConfigError(explainIssues(parsed.error.issues, { document, overrides, data }));
  checkTokens(parsed.data, document);
  checkRuntimes(parsed.data, document, options.env);
  checkTls(parsed.data, document, overrides);

  const pathOf = (name: string, path: string): string => {
    const isOverridden = overrides.some((override) => override.path[0] === name);
    const base = isOverridden || found === undefined ? cwd : resolve(found.path, "..");
    return resolve(base, expandHome(path, options.env));
  };
  const home = pathOf("home", parsed.data.home);
  return toConfig(parsed.data, {
    hostName: hostname(),
    home,
    models: parsed.data.models === undefined ? join(home, "models") : pathOf("models", parsed.data.models),
    pathOf,
    env: options.env,
    logFormat: (options.isTerminal ?? process.stdout.isTTY) ? "pretty" : "json",
    ...(found !== undefined && { file: found.path }),
  });
}

async function findFile(options: LoadConfigOptions, cwd: string): Promise<FoundFile | undefined> {
  const { flags, env } = options;
  const named = flags.config ?? (env.PLENUM_CONFIG === "" ? undefined : env.PLENUM_CONFIG);
  if (named !== undefined) {
    const path = resolve(cwd, expandHome(named, env));
    const text = await readIfThere(path);
    const origin = flags.config === undefined ? "PLENUM_CONFIG" : "--config";
    if (text === undefined) throw new ConfigError([`${origin}  there is no file ${path}`]);
    return { path, document: parseConfigDocument(text, path) };
  }
  const home = expandHome(flags.home ?? (env.PLENUM_HOME || "~/.plenum"), env);
  for (const path of [join(cwd, configFileName), resolve(cwd, home, configFileName)]) {
    const text = await readIfThere(path);
    if (text !== undefined) return { path, document: parseConfigDocument(text, path) };
  }
  return undefined;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") return undefined;
    throw new ConfigError([`${path}  can't be read: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

function expandHome(path: string, env: Environment): string {
  return path === "~" || path.startsWith("~/") ? join(env.HOME || homedir(), path.slice(1)) : path;
}

function checkTokens(file: ConfigFile, document: ConfigDocument | undefined): void {
  const seen = new Set<string>();
  for (const [index, { token_sha256 }] of file.auth.tokens.entries()) {
    if (seen.has(token_sha256)) {
      const path = ["auth", "tokens", index, "token_sha256"];
      const place = document?.placeOfValue(path) ?? "configuration";
      throw new ConfigError([`${place}  auth.tokens[${index}].token_sha256: this token is listed twice`]);
    }
    seen.add(token_sha256);
  }
}

function checkRuntimes(file: ConfigFile, document: ConfigDocument | undefined, env: Environment): void {
  const lines = runtimeMistakes(file.runtimes, env).map(
    ({ path, detail }) => `${document?.placeOfValue(path) ?? "configuration"}  ${showPath(path)}: ${detail}`,
  );
  if (lines.length > 0) throw new ConfigError(lines);
}

function checkTls(file: ConfigFile, document: ConfigDocument | undefined, overrides: readonly Override[]): void {
  if (file.tls !== undefined) return;
  const index = file.nnrp.listen.findIndex((address) => listenPlace(address)?.secure);
  if (index < 0) return;
  const path = ["nnrp", "listen", index];
  const override = overrides.find(({ path: set }) => set.join(".") === "nnrp.listen");
  const place = override?.origin ?? document?.placeOfValue(path) ?? "configuration";
  const name = `nnrp.listen[${index}]`;
  throw new ConfigError([`${place}  ${name}: this address needs tls.cert and tls.key, the files of a certificate`]);
}
