export { exposedAddress, isLoopbackHost } from "./check-exposure.ts";
export type {
  Config,
  EmbeddedConfig,
  EmbeddedModelConfig,
  LimitsConfig,
  LogFormat,
  LogLevel,
  NnrpConfig,
  RuntimeConfig,
  RuntimeKind,
  Scope,
  TlsFiles,
  TokenConfig,
} from "./config.ts";
export { ConfigError } from "./config-error.ts";
export { type LoadConfigOptions, loadConfig } from "./load-config.ts";
export { parseNetwork } from "./networks.ts";
export { listenPlace } from "./nnrp-schema.ts";
export type { ConfigFlags, Environment } from "./overrides.ts";
export { addedRuntimeSchema, strictAddedRuntimeSchema } from "./runtimes-schema.ts";
