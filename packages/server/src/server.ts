import { createHash, randomUUID } from "node:crypto";
import {
  type Backend,
  type Core,
  type CoreError,
  createCore,
  MemoryBus,
  MemoryEventLog,
  MemoryLeases,
  MemoryStore,
  type Observer,
  problems,
  randomIds,
  systemClock,
} from "@plenum/core";
import type { Logger } from "pino";
import { type Config, exposureProblem } from "./config/index.ts";
import { createBackends } from "./create-backends.ts";
import { createLmspDoor, type InterfaceEntry } from "./doors/lmsp/index.ts";
import { createOllamaDoor } from "./doors/ollama/index.ts";
import { createOpenaiDoor } from "./doors/openai/index.ts";
import type { Door, DoorRequest } from "./doors/shared/door.ts";
import { HttpService } from "./http/http-service.ts";
import { causeOf, createLogObserver } from "./log-observer.ts";
import { createLogger } from "./logger.ts";
import { Metrics } from "./metrics/metrics.ts";
import { readServiceId } from "./service-identity.ts";

/** Version of the product, as the service document tells it. */
export const version = "0.1.0";

export interface ServerOptions {
  /** @default made from the configuration's `log` */
  readonly logger?: Logger;
  /** Further backends, after the configured ones. */
  readonly backends?: readonly Backend[];
}

/** A running service. */
export interface PlenumServer {
  /**
   * Listens and begins to load the first model; resolves once requests are taken.
   * @throws Error with code EADDRINUSE, EACCES or EADDRNOTAVAIL.
   */
  listen(): Promise<void>;
  /** Base URL, once it listens. */
  readonly url: string;
  /** The doors that are open. */
  readonly interfaces: readonly { readonly kind: string; readonly url: string }[];
  readonly core: Core;
  /** Open connections to the listener. */
  connections(): Promise<number>;
  /**
   * Takes nothing new, lets running answers finish, then stops.
   * @param options.drainMs milliseconds that they get. @default the configuration's `drain_ms`
   */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/**
 * The composition root: here doors, backends and stores meet.
 * @throws Error when the service would be open to a network without a token.
 */
export async function createServer(config: Config, options: ServerOptions = {}): Promise<PlenumServer> {
  const exposure = exposureProblem(config);
  if (exposure !== undefined) throw new Error(exposure);
  const logger = options.logger ?? createLogger(config.log);
  const metrics = new Metrics();
  const doors = await createDoors(config);
  const backends = [...(await createBackends(config, logger)), ...(options.backends ?? [])];
  const core = createServiceCore(config, backends, joinObservers(metrics.observer, createLogObserver(logger)));
  metrics.watch(core);
  const readiness = watchReadiness(core);
  const http = new HttpService({
    core,
    doors,
    host: config.host,
    port: config.port,
    hosts: config.hosts,
    corsOrigins: config.corsOrigins,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
    requestBytes: config.limits.requestBytes,
    headerTimeoutMs: config.limits.headerTimeoutMs,
    idleTimeoutMs: config.limits.idleTimeoutMs,
    operator: { isReady: () => readiness.isReady, metrics: () => metrics.text() },
    onProblem: (error, request) => logProblem(logger, error, request),
    onAnswered: ({ method, path, requestId }, status) => logger.debug({ method, path, status, requestId }, "answered"),
  });
  const url = (): string => `http://${urlHost(config.host)}:${http.port}`;
  return {
    core,
    async listen() {
      await http.listen();
      void loadFirstModel(core, logger);
    },
    get url() {
      return url();
    },
    get interfaces() {
      return interfacesAt(config.publicUrl ?? url(), doors);
    },
    connections: () => http.connections(),
    async close({ drainMs = config.limits.drainMs } = {}) {
      await core.close(drainMs);
      await http.close();
      await Promise.all(backends.map((backend) => backend.close()));
    },
  };
}

function createServiceCore(config: Config, backends: readonly Backend[], observer: Observer): Core {
  const { limits, auth } = config;
  return createCore({
    backends,
    tokens: auth.tokens.map(({ tokenSha256, ...token }) => ({ ...token, sha256: tokenSha256 })),
    limits: {
      queued: limits.queue,
      queuedPerKey: limits.queuePerPrincipal ?? Math.ceil(limits.queue * 0.75),
      resumeWindowMs: limits.resumeWindowMs,
      defaultDeadlineMs: limits.defaultDeadlineMs,
      textRetentionMs: limits.textRetentionMs,
      storedRetentionMs: limits.eventRetentionMs,
      recordBytesTotal: limits.logBytesTotal,
    },
    log: new MemoryEventLog({ bytesPerResponse: limits.logBytesPerResponse, bytesTotal: limits.logBytesTotal }),
    store: new MemoryStore(),
    leases: new MemoryLeases(),
    bus: new MemoryBus(),
    clock: systemClock,
    ids: randomIds,
    sha256: (text) => createHash("sha256").update(text).digest("hex"),
    observer,
  });
}

async function createDoors(config: Config): Promise<readonly Door[]> {
  const others = [createOpenaiDoor(), createOllamaDoor({ version })];
  const lmsp: Door = createLmspDoor({
    id: await readServiceId(config.home),
    instance: randomUUID().slice(0, 8),
    name: config.name,
    version,
    authRequired: config.auth.tokens.length > 0,
    limits: {
      requestBytes: config.limits.requestBytes,
      eventRetentionS: Math.round(config.limits.eventRetentionMs / 1000),
    },
    interfaces: (origin) => interfacesAt(origin, [lmsp, ...others]),
  });
  return [lmsp, ...others];
}

/** Path at which clients of a door begin. */
const basePaths = { lmsp: "/lmsp/v1", openai: "/v1", ollama: "", nnrp: "" } as const;

function interfacesAt(origin: string, doors: readonly Door[]): readonly InterfaceEntry[] {
  return doors.map(({ kind, operations }) => ({
    kind,
    url: `${origin}${basePaths[kind]}`,
    ...(kind === "lmsp" ? { version: "1.0" } : { operations: [...new Set(operations.map(({ name }) => name))] }),
  }));
}

/** Ready from the moment that the first model is loaded; unloading an idle one later changes nothing. */
function watchReadiness(core: Core): { readonly isReady: boolean } {
  const readiness = { isReady: false };
  const look = (): void => {
    if (!core.catalog.list().some(({ state }) => state === "loaded")) return;
    readiness.isReady = true;
    stop();
  };
  const stop = core.catalog.onChange(look);
  look();
  return readiness;
}

async function loadFirstModel(core: Core, logger: Logger): Promise<void> {
  await core.catalog.ready;
  const first = core.catalog.list().find(({ capabilities, state }) => capabilities.chat && state === "available");
  const [route] = first === undefined ? [] : core.catalog.resolve(first.id).routes;
  if (first === undefined || route === undefined) return;
  try {
    await route.backend.load(route.model.name, {}, AbortSignal.timeout(600_000));
  } catch (error) {
    if (!core.responses.isDraining) logger.warn({ model: first.id, cause: String(error) }, "model not loaded");
  }
}

function joinObservers(...observers: readonly Observer[]): Observer {
  return {
    responseCreated: (response) => {
      for (const observer of observers) observer.responseCreated?.(response);
    },
    responseStarted: (response) => {
      for (const observer of observers) observer.responseStarted?.(response);
    },
    responseFirstOutput: (response) => {
      for (const observer of observers) observer.responseFirstOutput?.(response);
    },
    responseEnded: (response, error) => {
      for (const observer of observers) observer.responseEnded?.(response, error);
    },
    embeddingEnded: (end) => {
      for (const observer of observers) observer.embeddingEnded?.(end);
    },
    fault: (error) => {
      for (const observer of observers) observer.fault?.(error);
    },
  };
}

function logProblem(logger: Logger, error: CoreError, { method, path, requestId }: DoorRequest): void {
  const line = { method, path, requestId, code: error.code, ...causeOf(error) };
  if (problems[error.code].fault === "service") logger.error(line, "request failed");
  else logger.debug(line, "request refused");
}

function urlHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
