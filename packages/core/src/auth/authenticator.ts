import type { Clock } from "../ports/clock.ts";
import type { Sha256 } from "../ports/digest.ts";
import { CoreError } from "../problems/core-error.ts";
import { type Caller, type Principal, type Scope, scopes } from "./principal.ts";

/** A token as it is kept: never the token itself. */
export interface TokenRecord {
  /** Principal's id. */
  readonly principal: string;
  /** SHA-256 of the token, 64 hex digits. */
  readonly sha256: string;
  readonly scopes: readonly Scope[];
  readonly models?: readonly string[];
  /** Milliseconds since the epoch; absent: never. */
  readonly expiresAtMs?: number;
  readonly topPriority?: number;
}

/** Owns everything while the service is open. */
export const localPrincipal: Principal = { id: "local", scopes: new Set(scopes) };

/** One set of bearer tokens for every door (LMSP §2). Without a token record the service is open to whoever reaches it. */
export class Authenticator {
  readonly #records: ReadonlyMap<string, TokenRecord>;
  readonly #sha256: Sha256;
  readonly #clock: Clock;
  /** Callers by the tokens that were good, so that a client in use costs no digest for each request. */
  readonly #known = new Map<string, { readonly record: TokenRecord; readonly caller: Caller }>();

  constructor(records: readonly TokenRecord[], sha256: Sha256, clock: Clock) {
    this.#records = new Map(records.map((record) => [record.sha256.toLowerCase(), record]));
    this.#sha256 = sha256;
    this.#clock = clock;
  }

  get isRequired(): boolean {
    return this.#records.size > 0;
  }

  /**
   * A token is found by its digest, or by its hash among those that were good, so that the time of a miss tells nothing
   * about a token.
   * @param bearer token of the request, undefined without one.
   * @param peer address of the client, for fairness while the service is open.
   * @throws CoreError unauthorized
   */
  authenticate(bearer: string | undefined, peer: string): Caller {
    if (!this.isRequired) {
      const fairnessKey = bearer ? `bearer:${this.#sha256(bearer).slice(0, 16)}` : `peer:${peer}`;
      return { principal: localPrincipal, fairnessKey };
    }
    if (!bearer) {
      throw new CoreError("unauthorized", "Send a token: Authorization: Bearer <token>.");
    }
    const known = this.#known.get(bearer) ?? this.#lookUp(bearer);
    if (known === undefined || this.#hasExpired(known.record)) {
      throw new CoreError("unauthorized", "The token is not known here or has expired; ask the operator for one.");
    }
    return known.caller;
  }

  /** Only good tokens are remembered, so there are never more of them than records. */
  #lookUp(bearer: string): { readonly record: TokenRecord; readonly caller: Caller } | undefined {
    const record = this.#records.get(this.#sha256(bearer));
    if (record === undefined) return undefined;
    const caller = { principal: principalOf(record), fairnessKey: `principal:${record.principal}` };
    const known = { record, caller };
    this.#known.set(bearer, known);
    return known;
  }

  #hasExpired(record: TokenRecord): boolean {
    return record.expiresAtMs !== undefined && record.expiresAtMs <= this.#clock.now();
  }
}

function principalOf(record: TokenRecord): Principal {
  return {
    id: record.principal,
    scopes: new Set(record.scopes),
    ...(record.models === undefined ? {} : { models: record.models }),
    ...(record.topPriority === undefined ? {} : { topPriority: record.topPriority }),
  };
}
