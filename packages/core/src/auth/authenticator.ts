import { detach } from "../detach.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Sha256 } from "../ports/digest.ts";
import type { TokenRecord, TokenStore } from "../ports/token-store.ts";
import { CoreError } from "../problems/core-error.ts";
import { type Caller, type Principal, type Quota, scopes } from "./principal.ts";

export interface AuthenticatorOptions {
  /** Tokens of the configuration; nothing changes them. */
  readonly fixed: readonly TokenRecord[];
  readonly store: TokenStore;
  readonly bus: Bus;
  readonly sha256: Sha256;
  readonly clock: Clock;
  /** False: requires a token also while none exists, because strangers can reach the service. */
  readonly mayBeOpen: boolean;
  /** Told of a store that fails. */
  readonly onFault: ((error: unknown) => void) | undefined;
}

/** Owns everything while the service is open. */
export const localPrincipal: Principal = { id: "local", scopes: new Set(scopes) };

/** Milliseconds between two notes of one token's use. */
const touchIntervalMs = 5_000;
/** Milliseconds that notes of use are gathered before they are written. */
const touchDelayMs = 1_000;
/** Milliseconds after which the store is read anew: a notification of another replica can be lost. */
const refreshMs = 30_000;

/** A token that is accepted, and who hears of its end. */
interface Known {
  record: TokenRecord;
  caller: Caller;
  /** Milliseconds since the epoch of the last use that was noted. */
  notedAt: number;
  readonly watchers: Set<() => void>;
}

/**
 * One set of bearer tokens for every door (LMSP §2), held in memory and read anew when it changes, so that a request
 * waits for no store. Without any token the service is open to whoever reaches it.
 */
export class Authenticator {
  readonly #options: AuthenticatorOptions;
  #byDigest: ReadonlyMap<string, Known> = new Map();
  /** By the tokens that were good, so that a client in use costs no digest for each request; as many as tokens at most. */
  readonly #byBearer = new Map<string, Known>();
  readonly #byCaller = new WeakMap<Caller, Known>();
  #uses = new Map<string, number>();
  #loading: Promise<void> | undefined;
  #isStale = false;
  readonly #unsubscribe: () => void;
  #stopRefresh: () => void = () => {};
  #stopExpiry: () => void = () => {};
  #stopTouch: () => void = () => {};

  constructor(options: AuthenticatorOptions) {
    this.#options = options;
    this.#replace([]);
    this.#unsubscribe = options.bus.subscribe("tokens.changed", () => detach(this.reload(), options.onFault));
  }

  /** Reads the kept tokens, and again from time to time. Before, those of the configuration are known alone. */
  async load(): Promise<void> {
    await this.reload();
    const again = (): void => {
      detach(this.reload(), this.#options.onFault);
      this.#stopRefresh = this.#options.clock.after(refreshMs, again);
    };
    this.#stopRefresh();
    this.#stopRefresh = this.#options.clock.after(refreshMs, again);
  }

  /** Resolves when everything that was kept before the call is in force here. */
  async reload(): Promise<void> {
    // One that reads already may have read before the change.
    this.#isStale = this.#loading !== undefined;
    this.#loading ??= this.#read();
    await this.#loading;
  }

  get isRequired(): boolean {
    return this.#byDigest.size > 0 || !this.#options.mayBeOpen;
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
      const fairnessKey = bearer ? `bearer:${this.#options.sha256(bearer).slice(0, 16)}` : `peer:${peer}`;
      return { principal: localPrincipal, fairnessKey };
    }
    if (!bearer) {
      throw new CoreError("unauthorized", "Send a token: Authorization: Bearer <token>.");
    }
    const known = this.#byBearer.get(bearer) ?? this.#lookUp(bearer);
    const now = this.#options.clock.now();
    if (known === undefined || hasExpired(known.record, now)) {
      throw new CoreError("unauthorized", "The token is not known here or has expired; ask the operator for one.");
    }
    if (now - known.notedAt >= touchIntervalMs) this.#noteUse(known, now);
    return known.caller;
  }

  /**
   * Calls once when the caller's token is revoked or expires, for what is open for longer than a request.
   * @returns a function that ends the watch.
   */
  watch(caller: Caller, onEnd: () => void): () => void {
    const watchers = this.#byCaller.get(caller)?.watchers;
    if (watchers === undefined) return () => {};
    watchers.add(onEnd);
    return () => watchers.delete(onEnd);
  }

  /** Writes what is to be noted. */
  async close(): Promise<void> {
    this.#unsubscribe();
    this.#stopRefresh();
    this.#stopExpiry();
    this.#stopTouch();
    await this.#writeUses();
  }

  async #read(): Promise<void> {
    try {
      do {
        this.#isStale = false;
        this.#replace(await this.#options.store.tokens());
      } while (this.#isStale);
    } finally {
      this.#loading = undefined;
    }
  }

  /** A token that stays keeps its place, so that its requests and their watchers notice nothing. */
  #replace(kept: readonly TokenRecord[]): void {
    const before = this.#byDigest;
    const next = new Map<string, Known>();
    for (const record of [...kept, ...this.#options.fixed]) {
      const known = before.get(record.sha256);
      next.set(record.sha256, known === undefined ? this.#newKnown(record) : this.#renew(known, record));
    }
    this.#byDigest = next;
    for (const [bearer, known] of this.#byBearer) {
      if (next.get(known.record.sha256) !== known) this.#byBearer.delete(bearer);
    }
    for (const [digest, known] of before) if (next.get(digest) !== known) endWatchers(known);
    this.#endExpired();
  }

  #newKnown(record: TokenRecord): Known {
    return this.#withCaller({
      record,
      caller: callerOf(record),
      notedAt: Number.NEGATIVE_INFINITY,
      watchers: new Set(),
    });
  }

  #renew(known: Known, record: TokenRecord): Known {
    const isSame = rightsOf(known.record) === rightsOf(record);
    known.record = record;
    if (isSame) return known;
    known.caller = callerOf(record);
    return this.#withCaller(known);
  }

  #withCaller(known: Known): Known {
    this.#byCaller.set(known.caller, known);
    return known;
  }

  /** Ends what is open with tokens that have expired, and waits for the next one. */
  #endExpired(): void {
    const { clock } = this.#options;
    const now = clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const known of this.#byDigest.values()) {
      const { expiresAtMs = Number.POSITIVE_INFINITY } = known.record;
      if (expiresAtMs <= now) endWatchers(known);
      else next = Math.min(next, expiresAtMs);
    }
    this.#stopExpiry();
    if (next !== Number.POSITIVE_INFINITY) {
      this.#stopExpiry = clock.after(next - now, () => this.#endExpired());
    }
  }

  #lookUp(bearer: string): Known | undefined {
    const known = this.#byDigest.get(this.#options.sha256(bearer));
    if (known !== undefined) this.#byBearer.set(bearer, known);
    return known;
  }

  #noteUse(known: Known, now: number): void {
    known.notedAt = now;
    // The configuration keeps no such thing.
    if (this.#options.fixed.includes(known.record)) return;
    if (this.#uses.size === 0) {
      const { clock, onFault } = this.#options;
      this.#stopTouch = clock.after(touchDelayMs, () => detach(this.#writeUses(), onFault));
    }
    this.#uses.set(known.record.id, now);
  }

  async #writeUses(): Promise<void> {
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    await this.#options.store.touch(uses);
  }
}

function hasExpired({ expiresAtMs }: TokenRecord, now: number): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= now;
}

function endWatchers({ watchers }: Known): void {
  const all = [...watchers];
  watchers.clear();
  for (const end of all) end();
}

/** Everything about a token that its requests depend on. */
function rightsOf({ lastUsedAt: _, ...rights }: TokenRecord): string {
  return JSON.stringify(Object.entries(rights).sort());
}

function callerOf(record: TokenRecord): Caller {
  const caller = { principal: principalOf(record), fairnessKey: `principal:${record.principal}` };
  const quota = quotaOf(record);
  return quota === undefined ? caller : { ...caller, quota };
}

function principalOf(record: TokenRecord): Principal {
  return {
    id: record.principal,
    scopes: new Set(record.scopes),
    ...(record.models === undefined ? {} : { models: record.models }),
    ...(record.topPriority === undefined ? {} : { topPriority: record.topPriority }),
  };
}

function quotaOf({ id, requestsPerMinute, tokensPerMinute, concurrency }: TokenRecord): Quota | undefined {
  if (requestsPerMinute === undefined && tokensPerMinute === undefined && concurrency === undefined) return undefined;
  return {
    key: id,
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
    ...(tokensPerMinute === undefined ? {} : { tokensPerMinute }),
    ...(concurrency === undefined ? {} : { concurrency }),
  };
}
