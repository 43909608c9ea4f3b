import { readFile } from "node:fs/promises";
import { type Capabilities, CoreError } from "@plenum/core";
import type { ClientConnection } from "@plenum/nnrp";
import { type ConnectOptions, connect } from "@plenum/nnrp/node";
import type { RuntimeLogger } from "../shared/model-watch.ts";
import { defaultHeadTimeoutMs, defaultSilenceTimeoutMs } from "../shared/upstream.ts";

export interface NnrpOptions {
  /** Unique in the service. */
  readonly id: string;
  /** `nnrp://host:port`, `nnrps://`, `tcp://`, `tls://`, `ws://host:port/path`, `wss://`, `unix:///path`, `npipe://name`. */
  readonly url: string;
  /** Sent with each request as `nnrp.authorization`, `Bearer <key>`; never logged. */
  readonly apiKey?: string;
  /** PEM file of certificates that are trusted instead of the platform's; read anew for each connection. */
  readonly ca?: string;
  /** Headers of a WebSocket upgrade; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Names to serve, `*` stands for any text. Names without `*` are served also when the service has no list. @default all */
  readonly models?: readonly string[];
  /** What its models can do, where the service does not tell. */
  readonly capabilities?: Partial<Capabilities>;
  /** Responses at once for each model, 1 … 65536. @default 8 */
  readonly parallel?: number;
  /** Milliseconds until the first event of an answer. @default 600000, and 3600000 for an answer that is asked for in one piece */
  readonly headTimeoutMs?: number;
  /** Milliseconds of silence within an answer. @default 300000 */
  readonly silenceTimeoutMs?: number;
  /** Milliseconds between looks at the service. @default 30000 */
  readonly probeIntervalMs?: number;
  /** Id of the process that this backend is part of: a service that leads back to it is not used. @default none */
  readonly serviceId?: string;
  /** Told of the ids of the service and of those behind it, and of none while it is not used. @default nobody */
  readonly onServices?: (ids: readonly string[]) => void;
  /** Milliseconds that the service gets to confirm a cancel. @default 5000 */
  readonly cancelTimeoutMs?: number;
  /** @default writes nothing */
  readonly logger?: RuntimeLogger;
  /** Opens a connection. @default by the URL */
  readonly connect?: () => Promise<ClientConnection>;
}

/** Options with their defaults. */
export interface NnrpSettings {
  readonly id: string;
  readonly authorization: string | undefined;
  /** Values that must not be shown. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly models: readonly string[];
  readonly capabilities: Partial<Capabilities>;
  readonly parallel: number;
  readonly headTimeoutMs: number;
  /** Milliseconds until the one event of an answer in one piece. */
  readonly wholeTimeoutMs: number;
  readonly silenceTimeoutMs: number;
  readonly probeIntervalMs: number;
  readonly serviceId: string | undefined;
  readonly onServices: (ids: readonly string[]) => void;
  readonly logger: RuntimeLogger;
  readonly connect: () => Promise<ClientConnection>;
}

/** The runtime's kind: key of `runtimeOptions`, name in the catalog. */
export const kind = "nnrp";

const silent: RuntimeLogger = { info: () => undefined, warn: () => undefined };

/** Milliseconds for each step of connecting: the carrier, the hello, the session. */
const connectTimeoutMs = 4_000;

/** @throws RangeError for a `parallel` out of range */
export function settingsOf(options: NnrpOptions): NnrpSettings {
  const { url, apiKey, ca, headers = {}, parallel = 8, cancelTimeoutMs = 5_000 } = options;
  if (!(Number.isInteger(parallel) && parallel >= 1 && parallel <= 65536)) {
    throw new RangeError(`parallel must be a whole number from 1 to 65536, not ${parallel}`);
  }
  const authorization = apiKey === undefined ? undefined : `Bearer ${apiKey}`;
  const connectOptions: ConnectOptions = {
    headers,
    limits: {
      connectMs: connectTimeoutMs,
      handshakeMs: connectTimeoutMs,
      openMs: connectTimeoutMs,
      cancelMs: cancelTimeoutMs,
    },
  };
  return {
    id: options.id,
    authorization,
    secrets: authorization === undefined ? headers : { ...headers, authorization },
    models: options.models ?? [],
    capabilities: options.capabilities ?? {},
    parallel,
    headTimeoutMs: options.headTimeoutMs ?? defaultHeadTimeoutMs,
    wholeTimeoutMs: options.headTimeoutMs ?? 3_600_000,
    silenceTimeoutMs: options.silenceTimeoutMs ?? defaultSilenceTimeoutMs,
    probeIntervalMs: options.probeIntervalMs ?? 30_000,
    serviceId: options.serviceId,
    onServices: options.onServices ?? (() => {}),
    logger: options.logger ?? silent,
    connect: options.connect ?? (() => connectTo(url, ca, connectOptions)),
  };
}

/** @throws CoreError backend-unavailable for a file that can't be read; what `connect` throws */
async function connectTo(url: string, ca: string | undefined, options: ConnectOptions): Promise<ClientConnection> {
  if (ca === undefined) return connect(url, options);
  let pem: string;
  try {
    pem = await readFile(ca, "utf8");
  } catch (cause) {
    const detail = `The runtime's ca can't be read; correct the file's name.`;
    throw new CoreError("backend-unavailable", detail, {}, { cause });
  }
  return connect(url, { ...options, tls: { ca: pem } });
}
