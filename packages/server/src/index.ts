export {
  availableKinds,
  findBuilds,
  type GpuBuild,
  type GpuKind,
  type GpuProbe,
  gpuKinds,
  type InstalledBuild,
  installBuild,
  missingKind,
  probeBuild,
  removeBuild,
} from "./backends/embedded/gpu/index.ts";
export { installedVersion, libraryProblem, pinnedVersion } from "./backends/embedded/library-version.ts";
export { findModelFits, type ModelFit } from "./backends/embedded/model-fit.ts";
export {
  type Config,
  ConfigError,
  type ConfigFlags,
  type EmbeddedConfig,
  type EmbeddedModelConfig,
  type Environment,
  exposedAddress,
  isLoopbackHost,
  type LimitsConfig,
  type LoadConfigOptions,
  type LogFormat,
  type LogLevel,
  loadConfig,
  type RuntimeConfig,
  type RuntimeKind,
  type Scope,
  type TokenConfig,
} from "./config/index.ts";
export { checkRuntime, embeddedOptions } from "./create-backends.ts";
export { findLocalRuntimes, type LocalRuntime } from "./discovery/local/index.ts";
export { firstTokenFile } from "./first-token.ts";
export {
  type EnsuredModelFile,
  type EnsureModelFileOptions,
  ensureStarterModel,
  type FetchProgress,
  type FetchSource,
  hasModelFile,
  type OnProgress,
  starterModel,
} from "./model-files/index.ts";
export { ListenError } from "./nnrp-listeners.ts";
export { type OwnTokens, openOwnTokens } from "./own-tokens.ts";
export { createServer, type PlenumServer, type ServerOptions, version } from "./server.ts";
export { type RepairReport, repairSqlite, StorageRefusal } from "./store/sqlite/index.ts";
