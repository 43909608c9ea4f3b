import { randomUUID } from "node:crypto";
import {
  type Backend,
  type Core,
  type CoreError,
  createBatchExecutor,
  createCore,
  MemoryBus,
  MemoryLeases,
  MemoryQuotaStore,
  type Neighbourhood,
  type Observer,
  problems,
  randomIds,
  type Storage,
  systemClock,
} from "@plenum/core";
import { acceptUpgrade, type Listener } from "@plenum/nnrp/node";
import { schemaVersion } from "@plenum/profile";
import type { Logger } from "pino";
import type { EmbeddedBackend } from "./backends/embedded/index.ts";
import {
  type Config,
  exposedAddress,
  isLoopbackHost,
  listenPlace,
  type NnrpConfig,
  type TlsFiles,
} from "./config/index.ts";
import { type ConfiguredBackends, createBackends } from "./create-backends.ts";
import { type Asker, createLmspDoor, type InterfaceEntry, type ServiceFacts, toBatchLine } from "./doors/lmsp/index.ts";
import { capabilitiesPath, createNnrpDoor, type NnrpDoor, webSocketPath } from "./doors/nnrp/index.ts";
import { createOllamaDoor } from "./doors/ollama/index.ts";
import { createOpenaiDoor } from "./doors/openai/index.ts";
import type { Door } from "./doors/shared/door.ts";
import { createFirstToken } from "./first-token.ts";
import { HttpService } from "./http/http-service.ts";
import { LocalNetwork } from "./local-network.ts";
import { causeOf, createLogObserver } from "./log-observer.ts";
import { createLogger } from "./logger.ts";
import { MetricsHistory } from "./metrics/history.ts";
import { Metrics } from "./metrics/metrics.ts";
import { createModelExecutors, ModelLibrary, ModelPuller } from "./model-files/index.ts";
import { closeListeners, openListeners } from "./nnrp-listeners.ts";
import { keepServiceId } from "./service-identity.ts";
import { sha256 } from "./sha256.ts";
import { openStorage } from "./store/open-storage.ts";
import { readTlsPair, watchTlsFiles } from "./tls-files.ts";

/** Version of the product, as the service document tells it. */
export const version = "0.1.0";

export interface ServerOptions {
  /** @default made from the configuration's `log` */
  readonly logger?: Logger;
  /** Further backends, after the configured ones. */
  readonly backends?: readonly Backend[];
  /** In place of the configured one; closed by who made it. */
  readonly storage?: Storage;
}

/** A running service. */
export interface PlenumServer {
  /**
   * Listens and begins to load the first model; resolves once requests are taken.
   * @throws Error with code EADDRINUSE, EACCES or EADDRNOTAVAIL; ListenError for an address of NNRP's.
   */
  listen(): Promise<void>;
  /** Base URL, once it listens. */
  readonly url: string;
  /** The doors that are open. */
  readonly interfaces: readonly { readonly kind: string; readonly url: string }[];
  readonly core: Core;
  /** File with the first token, which this start has made. Absent: there was one, or none is needed. */
  readonly madeTokenFile?: string;
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
 * @throws Error when the first token of a service that strangers can reach can't be written, or for wrong TLS files.
 */
export async function createServer(config: Config, options: ServerOptions = {}): Promise<PlenumServer> {
  const tls = config.tls === undefined ? {} : { tls: readTlsPair(config.tls) };
  const logger = options.logger ?? createLogger(config.log);
  const metrics = new Metrics();
  const history = new MetricsHistory(systemClock);
  const storage = options.storage ?? (await openStorage(config, logger));
  const identity = { id: await keepServiceId(storage.settings, config.home), instance: randomUUID().slice(0, 8) };
  // Processes with one home have one id, and may well ask each other.
  const serviceId = `${identity.id}.${identity.instance}`;
  const behind = new Map<string, readonly string[]>();
  const onServices = (runtime: string, ids: readonly string[]): void => void behind.set(runtime, ids);
  const path = { serviceId, sharedId: identity.id, onServices };
  const library = new ModelLibrary(config.models, storage.settings);
  await library.load();
  const { embedded, ...configured } = await createBackends(config, logger, path, library);
  const backends = [...configured.backends, ...(options.backends ?? [])];
  const network = new LocalNetwork({
    id: identity.id,
    name: config.name,
    host: config.host,
    isOn: config.discovery,
    kinds: () => [...new Set(doors.map(({ kind }) => kind))],
    authRequired: () => core.authenticator.isRequired,
    logger,
  });
  const observer = joinObservers(metrics.observer, history.observer, createLogObserver(logger));
  const core = createServiceCore(config, { ...configured, backends }, { network, observer, storage });
  await core.authenticator.load();
  const madeTokenFile = core.authenticator.isRequired ? await createFirstToken(core, config.home) : undefined;
  await core.models.loadAliases();
  registerExecutors(core, createPuller(config, core, library, embedded));
  metrics.watch(core);
  history.watch(core);
  const readiness = watchReadiness(core);
  const services = (): readonly string[] => [...new Set([serviceId, ...[...behind.values()].flat()])];
  const nnrp = createServiceNnrpDoor({ config: config.nnrp, core, logger, metrics, services });
  metrics.watchNnrp(nnrp.server);
  let listeners: readonly Listener[] = [];
  let unwatchTls = (): void => {};
  const doors = createDoors(config, { ...identity, history }, nnrp.pages, (asker) =>
    nnrpInterfaces(nnrp, listeners, asker),
  );
  const http = new HttpService({
    core,
    doors,
    host: config.host,
    port: config.port,
    hosts: config.hosts,
    corsOrigins: config.corsOrigins,
    trustedProxies: config.trustedProxies,
    ...tls,
    ...(config.publicUrl === undefined ? {} : { publicUrl: config.publicUrl }),
    requestBytes: config.limits.requestBytes,
    headerTimeoutMs: config.limits.headerTimeoutMs,
    idleTimeoutMs: config.limits.idleTimeoutMs,
    upgrades: [
      {
        path: webSocketPath,
        accept: (request, socket, head) => acceptUpgrade(nnrp.server, request, socket, head),
      },
    ],
    operator: { isReady: () => readiness.isReady, metrics: () => metrics.text() },
    onProblem: (error, { method, path, requestId }) => logProblem(logger, error, { method, path, requestId }),
    onAnswered: ({ method, path, requestId, headers: { traceparent } }, status) =>
      logger.debug({ method, path, status, requestId, traceparent }, "answered"),
  });
  const scheme = config.tls === undefined ? "http" : "https";
  const url = (): string => `${scheme}://${urlHost(config.host)}:${http.port}`;
  return {
    core,
    ...(madeTokenFile === undefined ? {} : { madeTokenFile }),
    async listen() {
      await core.runtimes.restore();
      await core.recover();
      const { tls } = config;
      listeners = await openListeners(nnrp.server, config.nnrp.listen, tls && (() => readTlsPair(tls)));
      try {
        await http.listen();
      } catch (error) {
        await closeListeners(listeners);
        throw error;
      }
      if (tls !== undefined) unwatchTls = watchTls(tls, [http, ...listeners], logger);
      network.open(url());
      void loadFirstModel(core, logger);
    },
    get url() {
      return url();
    },
    get interfaces() {
      const asker = { origin: config.publicUrl ?? url(), isLocal: true };
      return [...interfacesAt(asker, doors), ...nnrpInterfaces(nnrp, listeners, asker)];
    },
    connections: () => http.connections(),
    async close({ drainMs = config.limits.drainMs } = {}) {
      unwatchTls();
      history.close();
      await Promise.all([closeListeners(listeners), network.close()]);
      // Both give what runs the same time; an operation that is left ends as the service that closes.
      await Promise.all([core.close(drainMs), nnrp.server.close({ drainMs })]);
      await http.close();
      await Promise.all(backends.map((backend) => backend.close()));
      // Last: what ended in the drain is still to be written.
      if (options.storage === undefined) await storage.close();
    },
  };
}

function createServiceCore(
  config: Config,
  { backends, ...runtimes }: ConfiguredBackends,
  parts: { readonly network: Neighbourhood; readonly observer: Observer; readonly storage: Storage },
): Core {
  const { network: neighbourhood, observer, storage } = parts;
  const { limits, auth } = config;
  return createCore({
    backends,
    names: { aliases: config.aliases, sameAs: config.sameAs },
    runtimes,
    neighbourhood,
    tokens: auth.tokens.map(({ tokenSha256, ...token }) => ({ ...token, sha256: tokenSha256 })),
    mayBeOpen: config.insecureOpen || exposedAddress(config) === undefined,
    limits: {
      queued: limits.queue,
      queuedPerKey: limits.queuePerPrincipal ?? Math.ceil(limits.queue * 0.75),
      resumeWindowMs: limits.resumeWindowMs,
      defaultDeadlineMs: limits.defaultDeadlineMs,
      textRetentionMs: limits.textRetentionMs,
      storedRetentionMs: limits.eventRetentionMs,
      recordBytesTotal: limits.logBytesTotal,
      attempts: 3,
      tasksQueued: limits.queue,
      taskRetentionMs: config.store.taskRetentionMs,
    },
    storage,
    quotas: new MemoryQuotaStore(),
    leases: new MemoryLeases(),
    bus: new MemoryBus(),
    clock: systemClock,
    ids: randomIds,
    sha256,
    observer,
  });
}

/** Kinds of tasks that this service offers beside background responses (LMSP §7). */
function registerExecutors(core: Core, puller: ModelPuller): void {
  const { tasks, responses, storage, clock } = core;
  for (const executor of createModelExecutors(puller, core.models)) tasks.register(executor);
  tasks.register(createBatchExecutor({ responses, store: storage.tasks, clock, toLine: toBatchLine }));
}

function createPuller(
  { pull }: Config,
  { catalog }: Core,
  library: ModelLibrary,
  embedded: EmbeddedBackend | undefined,
): ModelPuller {
  return new ModelPuller({
    library,
    hub: { url: pull.hubUrl, ...(pull.hubToken === undefined ? {} : { token: pull.hubToken }) },
    runtimes: () => catalog.backends,
    hasModel: (name) => catalog.find(name) !== undefined,
    ...(embedded && {
      server: {
        rescan: () => embedded.rescan(),
        modelsOf: (paths) =>
          embedded.namesOf(paths).flatMap((name) => catalog.find(`${embedded.id}/${name}`)?.model.id ?? []),
      },
    }),
  });
}

interface NnrpDoorParts {
  readonly config: NnrpConfig;
  readonly core: Core;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly services: () => readonly string[];
}

function createServiceNnrpDoor({ config, core, logger, metrics, services }: NnrpDoorParts): NnrpDoor {
  return createNnrpDoor({
    core,
    services,
    limits: {
      connections: config.connections,
      sessionsPerConnection: config.sessionsPerConnection,
      operationsPerSession: config.operationsPerSession,
      frameBytes: config.frameBytes,
      handshakeMs: config.handshakeTimeoutMs,
      idleMs: config.idleTimeoutMs === 0 ? Number.POSITIVE_INFINITY : config.idleTimeoutMs,
    },
    onProblem: (error, request) => logProblem(logger, error, { door: "nnrp", ...request }),
    onRequest: (request) => logger.debug({ door: "nnrp", ...request }, "asked"),
    onEvent: (told) => {
      metrics.nnrpObserver(told);
      const { event, ...facts } = told;
      logger.debug({ door: "nnrp", ...facts }, event);
    },
    onFault: (error) => logger.error({ door: "nnrp", cause: String(error) }, "fault"),
  });
}

function createDoors(
  config: Config,
  identity: Pick<ServiceFacts, "id" | "instance" | "history">,
  nnrpPages: Door,
  furtherInterfaces: (asker: Asker) => readonly InterfaceEntry[],
): readonly Door[] {
  const others = [createOpenaiDoor(), createOllamaDoor({ version })];
  const lmsp: Door = createLmspDoor({
    ...identity,
    name: config.name,
    version,
    limits: {
      requestBytes: config.limits.requestBytes,
      eventRetentionS: Math.round(config.limits.eventRetentionMs / 1000),
    },
    interfaces: (asker) => [...interfacesAt(asker, [lmsp, ...others]), ...furtherInterfaces(asker)],
  });
  return [lmsp, nnrpPages, ...others];
}

/** Path at which clients of a door begin. */
const basePaths = { lmsp: "/lmsp/v1", openai: "/v1", ollama: "" } as const;

function interfacesAt({ origin }: Asker, doors: readonly Door[]): readonly InterfaceEntry[] {
  return doors.flatMap(({ kind, operations }) => {
    if (kind === "nnrp") return [];
    const names = [...new Set(operations.map(({ name }) => name))];
    return {
      kind,
      url: `${origin}${basePaths[kind]}`,
      ...(kind === "lmsp" ? { version: "1.0" } : { operations: names }),
    };
  });
}

/** One entry for each address; sockets that only this machine can reach are told to it alone. */
function nnrpInterfaces(nnrp: NnrpDoor, listeners: readonly Listener[], { origin, isLocal }: Asker): InterfaceEntry[] {
  const entry = (transport: string, url: string): InterfaceEntry => ({
    kind: "nnrp",
    transport,
    url,
    profile: schemaVersion,
    compatibility_levels: nnrp.levels(),
    operations: [...nnrp.operations],
    capabilities: `${origin}${capabilitiesPath}`,
  });
  const entries = [entry("websocket", `${origin.replace(/^http/, "ws")}${webSocketPath}`)];
  for (const { endpoint } of listeners) {
    const place = listenPlace(endpoint);
    if (place === undefined) continue;
    if (place.carrier === "ipc") {
      if (isLocal) entries.push(entry("ipc", endpoint));
      continue;
    }
    // An address for every network is reached under the name that the asker knows.
    const isAny = place.host === "0.0.0.0" || place.host === "::";
    const host = isAny ? new URL(origin).hostname : urlHost(place.host);
    if (!isLocal && isLoopbackHost(place.host)) continue;
    const s = place.secure ? "s" : "";
    if (place.carrier === "tcp") entries.push(entry("tcp", `nnrp${s}://${host}:${place.port}`));
    else entries.push(entry("websocket", `ws${s}://${host}:${place.port}${place.target}`));
  }
  return entries;
}

/** @returns a function that ends it */
function watchTls(files: TlsFiles, listeners: readonly Pick<Listener, "renew">[], logger: Logger): () => void {
  return watchTlsFiles(files, {
    onPair: (pair) => {
      for (const listener of listeners) listener.renew(pair);
      logger.info({ cert: files.cert }, "certificate taken anew");
    },
    onProblem: (problem) => logger.warn({ problem }, "certificate not taken; the one before stays"),
  });
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
    taskEnded: (task) => {
      for (const observer of observers) observer.taskEnded?.(task);
    },
    embeddingEnded: (end) => {
      for (const observer of observers) observer.embeddingEnded?.(end);
    },
    fault: (error) => {
      for (const observer of observers) observer.fault?.(error);
    },
  };
}

function logProblem(logger: Logger, error: CoreError, request: object): void {
  const line = { ...request, code: error.code, ...causeOf(error) };
  if (problems[error.code].fault === "service") logger.error(line, "request failed");
  else logger.debug(line, "request refused");
}

function urlHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
