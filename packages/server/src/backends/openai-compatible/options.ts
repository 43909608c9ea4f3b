import type { Capabilities } from "@plenum/core";
import type { RuntimeLogger } from "../shared/model-watch.ts";
import { defaultHeadTimeoutMs, defaultSilenceTimeoutMs } from "../shared/upstream.ts";

export interface OpenaiCompatibleOptions {
  /** Unique in the service. */
  readonly id: string;
  /** Dialect: `llama-server`, `vllm`, `sglang`, `lm-studio`, `jan`, `openai`, `litellm`. @default "openai-compatible" */
  readonly kind?: string;
  /** `http://host:port`, with or without `/v1` or another path. */
  readonly baseUrl: string;
  /** Sent as `Authorization: Bearer`; never logged. */
  readonly apiKey?: string;
  /** Sent with every request; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Names to serve, `*` stands for any text. Names without `*` are served also when the server has no list. @default all */
  readonly models?: readonly string[];
  /** What its models can do, where the server does not tell and the dialect guesses wrong. */
  readonly capabilities?: Partial<Capabilities>;
  /** Responses at once for each model, 1 … 65536. @default what the server tells, else the dialect's */
  readonly parallel?: number;
  /** Milliseconds until the head of an answer. @default 600000, and 3600000 for an answer that is asked for in one piece */
  readonly headTimeoutMs?: number;
  /** Milliseconds of silence within an answer. @default 300000 */
  readonly silenceTimeoutMs?: number;
  /** Milliseconds between looks at the server. @default 30000 */
  readonly probeIntervalMs?: number;
  /** Milliseconds to wait while the server still loads its model. @default 120000 */
  readonly loadTimeoutMs?: number;
  /** @default writes nothing */
  readonly logger?: RuntimeLogger;
}

/** Options with their defaults. */
export interface OpenaiCompatibleSettings {
  readonly id: string;
  readonly kind: string;
  /** Without `/v1` and without a slash at its end. */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly models: readonly string[];
  readonly capabilities: Partial<Capabilities>;
  readonly parallel: number | undefined;
  readonly headTimeoutMs: number;
  /** Milliseconds until the head of an answer in one piece. */
  readonly wholeTimeoutMs: number;
  readonly silenceTimeoutMs: number;
  readonly probeIntervalMs: number;
  readonly loadTimeoutMs: number;
  readonly logger: RuntimeLogger;
}

const silent: RuntimeLogger = { info: () => undefined, warn: () => undefined };

/** @throws RangeError for a `parallel` out of range */
export function settingsOf(options: OpenaiCompatibleOptions): OpenaiCompatibleSettings {
  const { parallel, apiKey, headers } = options;
  if (parallel !== undefined && !(Number.isInteger(parallel) && parallel >= 1 && parallel <= 65536)) {
    throw new RangeError(`parallel must be a whole number from 1 to 65536, not ${parallel}`);
  }
  return {
    id: options.id,
    kind: options.kind ?? "openai-compatible",
    baseUrl: options.baseUrl.replace(/\/+$/, "").replace(/\/v1$/, ""),
    headers: { ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }), ...headers },
    models: options.models ?? [],
    capabilities: options.capabilities ?? {},
    parallel,
    headTimeoutMs: options.headTimeoutMs ?? defaultHeadTimeoutMs,
    wholeTimeoutMs: options.headTimeoutMs ?? 3_600_000,
    silenceTimeoutMs: options.silenceTimeoutMs ?? defaultSilenceTimeoutMs,
    probeIntervalMs: options.probeIntervalMs ?? 30_000,
    loadTimeoutMs: options.loadTimeoutMs ?? 120_000,
    logger: options.logger ?? silent,
  };
}
