import { join } from "node:path";
import { isLoopbackHost } from "./check-exposure.ts";
import type {
  Config,
  EmbeddedConfig,
  EmbeddedModelConfig,
  LimitsConfig,
  LogFormat,
  NnrpConfig,
  PullConfig,
  TokenConfig,
} from "./config.ts";
import { durationMs } from "./durations.ts";
import type { Environment } from "./overrides.ts";
import type { ConfigFile } from "./schema.ts";
import { shareOrBytes } from "./sizes.ts";
import { toRuntimes } from "./to-runtimes.ts";

/** What the checked file does not say itself. */
export interface ConfigPlaces {
  readonly hostName: string;
  /** Absolute. */
  readonly home: string;
  /** Absolute. */
  readonly models: string;
  /** Makes a file's path absolute that the option of this name holds. */
  readonly pathOf: (option: string, path: string) => string;
  readonly logFormat: LogFormat;
  /** Holds the keys that `api_key_env` names. */
  readonly env: Environment;
  /** Absolute. */
  readonly file?: string;
}

/** Turns the checked file's spelling into the code's. */
export function toConfig(file: ConfigFile, places: ConfigPlaces): Config {
  return {
    name: file.name ?? places.hostName,
    host: file.host.replace(/^\[(.*)\]$/, "$1"),
    port: file.port,
    ...(file.public_url !== undefined && { publicUrl: file.public_url.replace(/\/+$/, "") }),
    home: places.home,
    models: places.models,
    hosts: file.hosts.map((host) => host.toLowerCase()),
    corsOrigins: file.cors_origins.map((origin) => origin.toLowerCase()),
    trustedProxies: file.trusted_proxies,
    limits: toLimits(file.limits),
    store: {
      kind: file.store.kind,
      path: file.store.path === undefined ? join(places.home, "plenum.db") : places.pathOf("store", file.store.path),
      maxBytes: file.store.max_bytes,
      content: file.store.content,
      taskRetentionMs: file.store.task_retention_s * 1000,
    },
    auth: { tokens: file.auth.tokens.map(toToken) },
    insecureOpen: file.insecure_open,
    log: { level: file.log.level, format: file.log.format ?? places.logFormat },
    ...(file.tls !== undefined && {
      tls: { cert: places.pathOf("tls", file.tls.cert), key: places.pathOf("tls", file.tls.key) },
    }),
    nnrp: toNnrp(file.nnrp),
    embedded: toEmbedded(file.embedded),
    aliases: new Map(Object.entries(file.aliases)),
    sameAs: new Map(Object.entries(file.same_as)),
    pull: toPull(file.pull, places.env),
    runtimes: toRuntimes(file.runtimes, places.env, (path) => places.pathOf("runtimes", path)),
    discovery: file.discovery ?? !isLoopbackHost(file.host.replace(/^\[(.*)\]$/, "$1")),
    findLocalRuntimes: file.find_local_runtimes,
    starterModel: file.starter_model,
    ...(places.file !== undefined && { file: places.file }),
  };
}

function toLimits(limits: ConfigFile["limits"]): LimitsConfig {
  return {
    requestBytes: limits.request_bytes,
    queue: limits.queue,
    ...(limits.queue_per_principal !== undefined && { queuePerPrincipal: limits.queue_per_principal }),
    logBytesPerResponse: limits.log_bytes_per_response,
    logBytesTotal: limits.log_bytes_total,
    eventRetentionMs: limits.event_retention_s * 1000,
    textRetentionMs: limits.text_retention_s * 1000,
    resumeWindowMs: limits.resume_window_s * 1000,
    loadTimeoutMs: limits.load_timeout_ms,
    headerTimeoutMs: limits.header_timeout_ms,
    idleTimeoutMs: limits.idle_timeout_ms,
    drainMs: limits.drain_ms,
    defaultDeadlineMs: limits.default_deadline_ms,
  };
}

function toToken(token: ConfigFile["auth"]["tokens"][number]): TokenConfig {
  return {
    principal: token.principal,
    tokenSha256: token.token_sha256,
    scopes: token.scopes,
    ...(token.models !== undefined && { models: token.models }),
    ...(token.expires_at !== undefined && { expiresAtMs: Date.parse(token.expires_at) }),
    ...(token.top_priority !== undefined && { topPriority: token.top_priority }),
    ...(token.requests_per_minute !== undefined && { requestsPerMinute: token.requests_per_minute }),
    ...(token.tokens_per_minute !== undefined && { tokensPerMinute: token.tokens_per_minute }),
    ...(token.concurrency !== undefined && { concurrency: token.concurrency }),
  };
}

function toNnrp(nnrp: ConfigFile["nnrp"]): NnrpConfig {
  return {
    listen: nnrp.listen,
    connections: nnrp.connections,
    sessionsPerConnection: nnrp.sessions_per_connection,
    operationsPerSession: nnrp.operations_per_session,
    frameBytes: nnrp.frame_bytes,
    handshakeTimeoutMs: nnrp.handshake_timeout_ms,
    idleTimeoutMs: nnrp.idle_timeout_ms,
  };
}

function toPull({ hub_url }: ConfigFile["pull"], { HF_TOKEN }: Environment): PullConfig {
  return { hubUrl: hub_url.replace(/\/+$/, ""), ...(HF_TOKEN ? { hubToken: HF_TOKEN } : {}) };
}

function toEmbedded(embedded: ConfigFile["embedded"]): EmbeddedConfig {
  const models = Object.entries(embedded.models).map(([name, model]) => [name, toEmbeddedModel(model)] as const);
  return {
    enabled: embedded.enabled,
    parallel: embedded.parallel,
    ...(embedded.context_tokens !== undefined && { contextTokens: embedded.context_tokens }),
    ...(embedded.threads !== undefined && { threads: embedded.threads }),
    gpu: embedded.gpu,
    keepAliveMs: durationMs(embedded.keep_alive),
    memoryBudget: shareOrBytes(embedded.memory_budget),
    models: Object.fromEntries(models),
  };
}

function toEmbeddedModel(model: ConfigFile["embedded"]["models"][string]): EmbeddedModelConfig {
  return {
    ...(model.id !== undefined && { id: model.id }),
    aliases: model.aliases,
    ...(model.context_tokens !== undefined && { contextTokens: model.context_tokens }),
    ...(model.parallel !== undefined && { parallel: model.parallel }),
  };
}
