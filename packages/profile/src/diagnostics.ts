import { isCount, isNonEmptyString, type JsonObject } from "./json.ts";

/** What a service tells about one request beside OpenAI's answer (profile §11). All of it may be absent. */
export interface Diagnostics {
  readonly requestId?: string;
  /** The service's own id of the work, such as an LMSP response id. */
  readonly responseId?: string;
  /** Name of what ran the model. */
  readonly runtime?: string;
  /** The carrier, such as `tcp` or `websocket`. */
  readonly transport?: string;
  /** Requests before this one when it was queued or refused. */
  readonly queuePosition?: number;
  /** Milliseconds between arrival and start. */
  readonly queueDelayMs?: number;
  /** Milliseconds between arrival and the first output. */
  readonly ttftMs?: number;
  /** Why trying again can help, such as `overloaded`. */
  readonly retryReason?: string;
  /** Milliseconds to wait before that. */
  readonly retryAfterMs?: number;
  /** Tokens of the prompt that came from a cache. */
  readonly cachedInputTokens?: number;
  readonly flowPressure?: FlowPressure;
  /** The trace that the client named, in W3C's form. */
  readonly traceparent?: string;
}

export type FlowPressure = "none" | "soft" | "hard" | "paused";

const pressures: readonly unknown[] = ["none", "soft", "hard", "paused"];

type Check = (value: unknown) => boolean;

const isPressure: Check = (value) => pressures.includes(value);
const isDuration: Check = (value) => typeof value === "number" && Number.isFinite(value) && value >= 0;

/** Name on the wire and what it must be. */
const members: { readonly [K in keyof Required<Diagnostics>]: readonly [string, Check] } = {
  requestId: ["request_id", isNonEmptyString],
  responseId: ["response_id", isNonEmptyString],
  runtime: ["runtime", isNonEmptyString],
  transport: ["transport", isNonEmptyString],
  queuePosition: ["queue_position", isCount],
  queueDelayMs: ["queue_delay_ms", isDuration],
  ttftMs: ["ttft_ms", isDuration],
  retryReason: ["retry_reason", isNonEmptyString],
  retryAfterMs: ["retry_after_ms", isDuration],
  cachedInputTokens: ["cached_input_tokens", isCount],
  flowPressure: ["flow_pressure", isPressure],
  traceparent: ["traceparent", isNonEmptyString],
};

const entries = Object.entries(members);

/** Diagnostics in the wire's spelling. */
export function writeDiagnostics(diagnostics: Diagnostics): JsonObject {
  const values = new Map(Object.entries(diagnostics));
  return Object.fromEntries(
    entries.flatMap(([name, [wireName]]) => (values.get(name) === undefined ? [] : [[wireName, values.get(name)]])),
  );
}

/** The members known here; others and wrong ones are ignored (profile §11). */
export function readDiagnostics(diagnostics: JsonObject): Diagnostics {
  return Object.fromEntries(
    entries.flatMap(([name, [wireName, isRight]]) => {
      const value = diagnostics[wireName];
      return isRight(value) ? [[name, value]] : [];
    }),
  );
}
