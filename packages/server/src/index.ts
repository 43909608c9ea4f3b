export {
  type Config,
  ConfigError,
  type ConfigFlags,
  type EmbeddedConfig,
  type EmbeddedModelConfig,
  type Environment,
  exposureProblem,
  isLoopbackHost,
  type LimitsConfig,
  type LoadConfigOptions,
  type LogFormat,
  type LogLevel,
  loadConfig,
  type Scope,
  type TokenConfig,
} from "./config/index.ts";
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
export { createServer, type PlenumServer, type ServerOptions, version } from "./server.ts";
