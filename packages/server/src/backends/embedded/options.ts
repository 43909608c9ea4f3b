import type { GpuSetting } from "./gpu/builds.ts";
import { installedVersion } from "./library-version.ts";
import { budgetBytes } from "./memory.ts";

/** Where the backend writes what an operator should know; pino's loggers fit. Never gets prompts or answers. */
export interface EmbeddedLogger {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

/** Settings of one model file. */
export interface EmbeddedModelOptions {
  /** Name instead of the one made from the file's. */
  readonly name?: string;
  /** Further names. */
  readonly aliases?: readonly string[];
  /** Tokens of prompt and answer together, for each response. @default as trained, lowered to fit memory */
  readonly contextTokens?: number;
  /** Responses at once. @default the backend's */
  readonly parallel?: number;
}

export interface EmbeddedBackendOptions {
  /** @default "embedded" */
  readonly id?: string;
  /** GGUF files, and folders that are searched for them, three levels deep. Missing ones are no error. */
  readonly paths: readonly string[];
  /** Further files and folders, asked at each look. @default none */
  readonly furtherPaths?: () => readonly string[];
  /**
   * Removes a model's files, or ends their being among `furtherPaths`. Absent: models can't be deleted.
   * @param path of its first file
   */
  readonly removeModel?: (path: string) => Promise<void>;
  /** Settings by file name (last part of the path) or by the name made from it. */
  readonly models?: Readonly<Record<string, EmbeddedModelOptions>>;
  /** Responses at once for each model; each takes its own context. 1 … 64. @default 4 */
  readonly parallel?: number;
  /** Tokens of prompt and answer together, for each response. @default as trained, lowered to fit memory */
  readonly contextTokens?: number;
  /** Compute threads for each model. @default the cores that help with arithmetic */
  readonly threads?: number;
  /** Milliseconds that a model may take from start to ready. @default 120000 */
  readonly loadTimeoutMs?: number;
  /** Milliseconds that an idle model stays loaded, unless a request says otherwise; -1: for ever. @default 1800000 */
  readonly keepAliveMs?: number;
  /** Bytes that all loaded models may take together; up to 1: a share of the memory of machine or container. @default 0.8 */
  readonly memoryLimit?: number;
  /** Which build of the engine runs the models. @default "auto" */
  readonly gpu?: GpuSetting;
  /** Folder of state, where `plenum engine add` puts GPU builds. Absent: there are none. */
  readonly home?: string;
  /** Version of node-llama-cpp that runs. @default the installed one; another than the pinned one is refused */
  readonly libraryVersion?: string;
  /** Folder that remembers digests over restarts; made when missing. Absent: nothing is remembered. */
  readonly cacheFolder?: string;
  /** @default writes nothing */
  readonly logger?: EmbeddedLogger;
}

/** Options with their defaults. */
export interface EmbeddedSettings
  extends Omit<
    EmbeddedBackendOptions,
    "contextTokens" | "threads" | "memoryLimit" | "home" | "libraryVersion" | "cacheFolder"
  > {
  readonly id: string;
  readonly models: Readonly<Record<string, EmbeddedModelOptions>>;
  readonly parallel: number;
  readonly contextTokens: number | undefined;
  readonly threads: number | undefined;
  readonly loadTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly memoryLimitBytes: number;
  readonly furtherPaths: () => readonly string[];
  readonly gpu: GpuSetting;
  readonly home: string | undefined;
  readonly libraryVersion: string | undefined;
  readonly cacheFolder: string | undefined;
  readonly logger: EmbeddedLogger;
}

const silent: EmbeddedLogger = { info: () => undefined, warn: () => undefined };

export function settingsOf(options: EmbeddedBackendOptions): EmbeddedSettings {
  const parallel = options.parallel ?? 4;
  if (!Number.isInteger(parallel) || parallel < 1 || parallel > 64) {
    throw new RangeError(`parallel must be a whole number from 1 to 64, not ${parallel}`);
  }
  return {
    id: options.id ?? "embedded",
    paths: options.paths,
    furtherPaths: options.furtherPaths ?? (() => []),
    ...(options.removeModel !== undefined && { removeModel: options.removeModel }),
    models: options.models ?? {},
    parallel,
    contextTokens: options.contextTokens,
    threads: options.threads,
    loadTimeoutMs: options.loadTimeoutMs ?? 120_000,
    keepAliveMs: options.keepAliveMs ?? 1_800_000,
    memoryLimitBytes: budgetBytes(options.memoryLimit),
    gpu: options.gpu ?? "auto",
    home: options.home,
    libraryVersion: options.libraryVersion ?? installedVersion(),
    cacheFolder: options.cacheFolder,
    logger: options.logger ?? silent,
  };
}
