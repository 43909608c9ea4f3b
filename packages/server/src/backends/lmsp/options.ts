import { normalizeBaseUrl } from "@plenum/client";
import type { RuntimeLogger } from "../shared/model-watch.ts";
import { defaultHeadTimeoutMs, defaultSilenceTimeoutMs } from "../shared/upstream.ts";

export interface LmspOptions {
  /** Unique in the service. */
  readonly id: string;
  /** `http://host:port`, with or without a path before `/lmsp/v1`. */
  readonly baseUrl: string;
  /** Sent as a bearer token, never to the service document; never logged. */
  readonly apiKey?: string;
  /** Sent with every request; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Id of the service that this backend is part of: what leads back to it is left out. @default none */
  readonly serviceId?: string;
  /** Only a service with this id is used; another one gets no token. @default any */
  readonly expectedServiceId?: string;
  /** Told of the ids of the service and of those behind it, and of none while it is not used. @default nobody */
  readonly onServices?: (ids: readonly string[]) => void;
  /** Ids or patterns with `*` of the models to offer. @default all */
  readonly models?: readonly string[];
  /** Responses at once for each model, 1 … 65536. @default as the service says of each model */
  readonly parallel?: number;
  /** Milliseconds until the head of an answer. @default 600000 */
  readonly headTimeoutMs?: number;
  /** Milliseconds of silence within an answer. @default 300000 */
  readonly silenceTimeoutMs?: number;
  /** Milliseconds between looks at the service, which also tells of changes by itself. @default 30000 */
  readonly probeIntervalMs?: number;
  /** Milliseconds that the service gets to confirm a cancel. @default 5000 */
  readonly cancelTimeoutMs?: number;
  /** @default writes nothing */
  readonly logger?: RuntimeLogger;
}

/** Options with their defaults. */
export interface LmspSettings extends Omit<LmspOptions, "apiKey" | "headers"> {
  readonly headers: Readonly<Record<string, string>>;
  readonly authorization: Readonly<Record<string, string>>;
  readonly models: readonly string[];
  readonly headTimeoutMs: number;
  readonly silenceTimeoutMs: number;
  readonly probeIntervalMs: number;
  readonly cancelTimeoutMs: number;
  readonly logger: RuntimeLogger;
  readonly onServices: (ids: readonly string[]) => void;
}

/** The runtime's kind in the configuration and in the catalog. */
export const kind = "lmsp";

const silent: RuntimeLogger = { info: () => undefined, warn: () => undefined };

/** @throws RangeError for a `parallel` out of range */
export function settingsOf({ apiKey, headers = {}, ...options }: LmspOptions): LmspSettings {
  const { parallel } = options;
  if (parallel !== undefined && !(Number.isInteger(parallel) && parallel >= 1 && parallel <= 65_536)) {
    throw new RangeError(`parallel must be a whole number from 1 to 65536, not ${parallel}`);
  }
  return {
    ...options,
    baseUrl: normalizeBaseUrl(options.baseUrl),
    headers,
    authorization: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
    models: options.models ?? [],
    headTimeoutMs: options.headTimeoutMs ?? defaultHeadTimeoutMs,
    silenceTimeoutMs: options.silenceTimeoutMs ?? defaultSilenceTimeoutMs,
    probeIntervalMs: options.probeIntervalMs ?? 30_000,
    cancelTimeoutMs: options.cancelTimeoutMs ?? 5_000,
    logger: options.logger ?? silent,
    onServices: options.onServices ?? (() => {}),
  };
}
