import type { RuntimeHealth } from "../ports/backend.ts";

/** From where a runtime is known. Only the last two can be removed while the service runs. */
export type RuntimeSource = "config" | "found" | "added" | "approved";

/** What a runtime is made from. The key and the headers are secrets: never listed, never logged. */
export interface RuntimeSettings {
  /** Unique in the service: 1 to 64 letters, digits, `.`, `_` or `-`. */
  readonly id: string;
  /** What it speaks, such as `ollama`. */
  readonly kind: string;
  /** Base URL. */
  readonly url: string;
  /** Sent as a bearer token. */
  readonly apiKey?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Responses that one of its models runs at once. */
  readonly parallel?: number;
  readonly headTimeoutMs?: number;
  readonly silenceTimeoutMs?: number;
  /** Its models that are offered, or patterns with `*`. Absent: every model. */
  readonly models?: readonly string[];
  /** LMSP: only a service with this id is used there. */
  readonly serviceId?: string;
}

/** A runtime as it is now (LMSP §4). */
export interface RuntimeStatus extends RuntimeHealth {
  readonly id: string;
  readonly kind: string;
  /** Absent: it runs in this service. */
  readonly url?: string;
  /** Catalog ids of what it serves. */
  readonly models: readonly string[];
  /** Responses and embeddings that it runs for this service. */
  readonly running: number;
  /** How many its loaded models run at once. Absent: none is loaded. */
  readonly capacity?: number;
  readonly source: RuntimeSource;
}

/** What the service was started with, beside what its backends tell. */
export interface RuntimeDescription {
  readonly id: string;
  readonly url?: string;
  readonly source: RuntimeSource;
}
