/** What an operator sees and changes (LMSP §2, §4, §8). */

export type Scope = "read" | "infer" | "manage" | "admin";

/** A person or an app: owns responses and tasks; one or more tokens speak for it. */
export interface LmspPrincipal {
  readonly id: string;
  readonly name: string;
  /** RFC 3339. */
  readonly created_at: string;
}

/** What a token may do; absent members do not limit it. */
export interface TokenRights {
  readonly scopes: readonly Scope[];
  /** Catalog ids, or patterns with `*`. */
  readonly models?: readonly string[];
  /** RFC 3339. */
  readonly expires_at?: string;
  readonly limits?: {
    /** Accepted requests in any 60 s. */
    readonly requests_per_minute?: number;
    /** Tokens of prompts and answers in any 60 s. */
    readonly tokens_per_minute?: number;
    /** Responses that wait or run at once. */
    readonly concurrency?: number;
    /** -8 … 8 */
    readonly top_priority?: number;
  };
}

/** A token as it is listed: never the token itself. */
export interface LmspToken extends TokenRights {
  readonly id: string;
  /** Principal's id. */
  readonly principal: string;
  readonly name?: string;
  /** RFC 3339, as is the next one. */
  readonly created_at?: string;
  readonly last_used_at?: string;
}

/** The only answer that carries the token itself. */
export interface NewToken extends LmspToken {
  readonly token: string;
}

export interface TokenRequest extends TokenRights {
  /** Made when there is none of this id. */
  readonly principal: string;
  readonly name?: string;
}

/** Something that runs models for the service. */
export interface LmspRuntime {
  readonly id: string;
  readonly kind: string;
  readonly url?: string;
  readonly state: "healthy" | "degraded" | "unavailable";
  /** Why it is not `healthy`. */
  readonly reason?: string;
  /** Catalog ids that it serves. */
  readonly models: readonly string[];
  /** Responses that run on it. */
  readonly running?: number;
  readonly capacity?: number;
  /** How the service came to it: its configuration, this machine, a person's request, or discovery. */
  readonly source?: "config" | "found" | "added" | "approved";
}

export interface RuntimeRequest {
  readonly id: string;
  readonly kind: string;
  /** Base URL without `/v1` or `/api`. */
  readonly url: string;
  /** A secret: no answer tells it again. */
  readonly api_key?: string;
}

/** A service that was found on the network. */
export interface NearbyService {
  /** Its service id. */
  readonly id: string;
  readonly name: string;
  /** Base URL. */
  readonly url: string;
  readonly version?: string;
  /** `none` or `bearer`. */
  readonly auth?: string;
  readonly kinds?: readonly string[];
  readonly addresses?: readonly string[];
  /** RFC 3339. */
  readonly seen_at?: string;
  readonly state: "seen" | "approved" | "gone";
}

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
}

/** What one step of time held. */
export interface MetricsPoint {
  /** Its beginning, RFC 3339. */
  readonly at: string;
  readonly requests: number;
  /** Ended with a problem, by its code. */
  readonly errors: Readonly<Record<string, number>>;
  /** Milliseconds to the first output. */
  readonly ttft_ms: Percentiles | null;
  /** Milliseconds between tokens. */
  readonly inter_token_ms: Percentiles | null;
  readonly output_tokens: number;
  readonly tokens_per_second: number;
}

/** The service's own short history. */
export interface MetricsHistory {
  readonly step_ms: number;
  /** RFC 3339, as is `to`. */
  readonly from: string;
  readonly to: string;
  readonly series: readonly {
    readonly model: string;
    readonly door: string;
    readonly points: readonly MetricsPoint[];
  }[];
  readonly queue: readonly { readonly at: string; readonly queued: number; readonly running: number }[];
}
