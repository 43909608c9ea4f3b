import { type Backend, CoreError, type RuntimeDescription, type RuntimeSettings } from "@plenum/core";
import { type Logger, pino } from "pino";
import { createEmbeddedBackend, type EmbeddedBackend, type EmbeddedBackendOptions } from "./backends/embedded/index.ts";
import { createLmspBackend } from "./backends/lmsp/index.ts";
import { createNnrpBackend } from "./backends/nnrp/index.ts";
import { createOllamaBackend } from "./backends/ollama/index.ts";
import { createOpenaiCompatibleBackend } from "./backends/openai-compatible/index.ts";
import type { Config, RuntimeConfig } from "./config/index.ts";
import { findLocalRuntimes } from "./discovery/local/index.ts";
import type { ModelLibrary } from "./model-files/index.ts";

/** This service among those that ask each other. */
export interface ServicePath {
  /** Id of this process. */
  readonly serviceId: string;
  /** The part of it that replicas share, as the service document tells it. */
  readonly sharedId: string;
  /** Told of the services that a runtime is or has behind it. */
  readonly onServices: (runtime: string, ids: readonly string[]) => void;
}

/**
 * Everything that runs models for this service, in the order in which bare model names go: the embedded engine, the
 * runtimes of the configuration, those that already run on this machine.
 */
export async function createBackends(
  config: Config,
  logger: Logger,
  services: ServicePath,
  library: ModelLibrary,
): Promise<ConfiguredBackends> {
  const embedded = config.embedded.enabled ? createEmbedded(config, logger, library) : undefined;
  const named = config.runtimes.map((runtime) => createRuntime(runtime, config, logger, services));
  const found = config.findLocalRuntimes ? await findRuntimes(config, logger) : [];
  const made = found.map((runtime) => createRuntime(runtime, config, logger));
  return {
    backends: [...(embedded === undefined ? [] : [embedded]), ...named, ...made],
    ...(embedded === undefined ? {} : { embedded }),
    described: [
      ...config.runtimes.map(({ name, url }) => ({ id: name, url, source: "config" }) as const),
      ...found.map(({ name, url }) => ({ id: name, url, source: "found" }) as const),
    ],
    create: ({ id, headers = {}, ...settings }) =>
      createRuntime({ ...settings, name: id, headers }, config, logger, services),
  };
}

export interface ConfiguredBackends {
  readonly backends: readonly Backend[];
  /** The one among them that serves files of this machine. Absent: it is switched off. */
  readonly embedded?: EmbeddedBackend;
  /** Where they are from. */
  readonly described: readonly RuntimeDescription[];
  /** Makes a further one while the service runs. */
  readonly create: (settings: RuntimeSettings) => Backend;
}

function createEmbedded(config: Config, logger: Logger, library: ModelLibrary): EmbeddedBackend {
  return createEmbeddedBackend({
    ...embeddedOptions(config),
    furtherPaths: () => library.registered,
    removeModel: (path) => library.remove(path),
    logger: logger.child({ room: "embedded" }),
  });
}

/** What the embedded engine runs with under a configuration, without the log. */
export function embeddedOptions({ embedded, models, home, limits }: Config): EmbeddedBackendOptions {
  const settings = Object.entries(embedded.models).map(
    ([file, { id, ...rest }]) => [file, { ...rest, ...(id === undefined ? {} : { name: id }) }] as const,
  );
  return {
    paths: [models],
    models: Object.fromEntries(settings),
    parallel: embedded.parallel,
    ...(embedded.contextTokens === undefined ? {} : { contextTokens: embedded.contextTokens }),
    ...(embedded.threads === undefined ? {} : { threads: embedded.threads }),
    gpu: embedded.gpu,
    home,
    loadTimeoutMs: limits.loadTimeoutMs,
    keepAliveMs: embedded.keepAliveMs,
    memoryLimit: embedded.memoryBudget,
    cacheFolder: `${home}/cache`,
  };
}

async function findRuntimes(config: Config, logger: Logger): Promise<readonly Runtime[]> {
  const known = config.runtimes.map(({ url }) => url);
  const found = await findLocalRuntimes({
    own: [`127.0.0.1:${config.port}`, ...known],
    takenNames: config.runtimes.map(({ name }) => name),
  });
  return found.map(({ name, kind, baseUrl }) => {
    logger.info({ runtime: name, kind, url: baseUrl }, "runtime found on this machine");
    return { name, kind, url: baseUrl, headers: {} };
  });
}

/**
 * Looks whether a runtime can be used.
 * @throws CoreError backend-unavailable and others, whose sentence says what to do
 */
export async function checkRuntime(runtime: RuntimeConfig, config: Config): Promise<void> {
  const backend = createRuntime(runtime, config, pino({ level: "silent" }));
  try {
    await backend.ready;
    // No model has this name, but only a runtime that answers can say so.
    await backend.load("", {}, new AbortController().signal);
  } catch (error) {
    if (!(error instanceof CoreError && error.code === "model-not-found")) throw error;
  } finally {
    await backend.close();
  }
}

type Runtime = Omit<RuntimeConfig, "kind"> & Pick<RuntimeSettings, "kind" | "serviceId">;

function createRuntime(
  runtime: Runtime,
  { limits: { loadTimeoutMs } }: Config,
  logger: Logger,
  services?: ServicePath,
): Backend {
  const { name, kind, url, apiKey, ca, headers, serviceId: expectedServiceId, ...limits } = runtime;
  const options = {
    ...limits,
    id: name,
    logger: logger.child({ room: "runtimes", runtime: name }),
  };
  const key = apiKey === undefined ? {} : { apiKey };
  const onServices = (ids: readonly string[]): void => services?.onServices(name, ids);
  if (kind === "lmsp") {
    const path = services && { serviceId: services.sharedId, onServices };
    const expected = expectedServiceId === undefined ? {} : { expectedServiceId };
    return createLmspBackend({ ...options, ...key, ...path, ...expected, baseUrl: url, headers });
  }
  if (kind === "nnrp") {
    const path = services && { serviceId: services.serviceId, onServices };
    return createNnrpBackend({ ...options, ...key, ...path, ...(ca === undefined ? {} : { ca }), url, headers });
  }
  if (kind !== "ollama") {
    return createOpenaiCompatibleBackend({ ...options, baseUrl: url, kind, headers, ...key, loadTimeoutMs });
  }
  const authorization = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  return createOllamaBackend({ ...options, baseUrl: url, headers: { ...authorization, ...headers } });
}
