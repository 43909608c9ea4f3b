import { detach } from "../detach.ts";
import type { Clock } from "../ports/clock.ts";
import type { Sha256 } from "../ports/digest.ts";
import type { IdempotencyRecord, IdempotencyStore } from "../ports/idempotency-store.ts";
import type { Ids } from "../ports/ids.ts";
import { CoreError } from "../problems/core-error.ts";
import { problems } from "../problems/table.ts";
import type { DoorKind, Response } from "./response.ts";

/** A request that must not be done twice (LMSP §5). */
export interface KeyedRequest {
  /** Principal's id. */
  readonly principal: string;
  readonly door: DoorKind;
  /** As the client made it. */
  readonly key: string;
  /** Path and body, which have to be the same each time. */
  readonly path: string;
  readonly body: string;
}

/** What a request with a key may make. */
export interface KeyedKind<Thing> {
  /** Before the unique part of its ids, such as `resp_`. */
  readonly prefix: string;
  /** Undefined: there is none of this id, or no longer. */
  find(id: string): Promise<Thing | undefined>;
  /** True: it failed in a way that leaves its key free. */
  isVoid(thing: Thing): boolean;
}

/** The first request with its key makes the thing; a later one gets it. */
export type KeyUse<Thing> =
  | { readonly isFirst: true; readonly x: string; release(): Promise<void> }
  | { readonly isFirst: false; readonly thing: Thing };

export interface IdempotencyParts {
  readonly store: IdempotencyStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly sha256: Sha256;
  readonly onFault: ((error: unknown) => void) | undefined;
}

/** Milliseconds that a key is kept, if what it stands for is kept as long. */
const keptMs = 24 * 3_600_000;
/** Milliseconds in which a thing has to be there after its key was taken; a crash in between frees the key then. */
const acceptanceMs = 60_000;
const sweepIntervalMs = 600_000;

/** Idempotency keys, for every door (LMSP §5; IETF draft Idempotency-Key). */
export class Idempotency {
  readonly #parts: IdempotencyParts;
  #sweptAt: number;

  constructor(parts: IdempotencyParts) {
    this.#parts = parts;
    this.#sweptAt = parts.clock.now();
  }

  /**
   * Takes the key, or finds what it stands for. Who was first and fails before the thing is there must release it.
   * @throws CoreError idempotency-in-progress while the first request is still being checked; idempotency-mismatch when
   * it was another one.
   */
  async use<Thing>(request: KeyedRequest, kind: KeyedKind<Thing>): Promise<KeyUse<Thing>> {
    const { store, clock, ids, sha256 } = this.#parts;
    const key = JSON.stringify([request.principal, request.door, request.key]);
    const bodySha256 = sha256(`${request.path}\n${request.body}`);
    const x = ids.unique();
    const id = kind.prefix + x;
    this.#sweep();
    for (;;) {
      const now = clock.now();
      const holder = await store.claim({ key, bodySha256, id, expiresAt: now + keptMs }, now);
      if (holder === undefined) return { isFirst: true, x, release: () => store.release(key, id) };
      const thing = await kind.find(holder.id);
      const isFree = thing === undefined ? !isBeingAccepted(holder, now) : kind.isVoid(thing);
      if (!isFree) {
        refuseOther(holder, bodySha256);
        if (thing === undefined) throw inProgress();
        return { isFirst: false, thing };
      }
      await store.release(key, holder.id);
    }
  }

  #sweep(): void {
    const { store, clock, onFault } = this.#parts;
    const now = clock.now();
    if (now - this.#sweptAt < sweepIntervalMs) return;
    this.#sweptAt = now;
    detach(store.sweep(now), onFault);
  }
}

/**
 * True for a response that a repeated request makes anew: it never started, or nobody got its answer, or it ended in a
 * way that asks to be sent again.
 */
export function isVoidResponse({ startedAt, problem }: Response): boolean {
  if (problem === undefined) return false;
  const { reason } = problem.details;
  const wasLost = reason === "disconnected" || reason === "abandoned";
  return startedAt === undefined || wasLost || problems[problem.code].retry === "later";
}

/** The first request still runs, and its answer can't be joined. */
export function inProgress(): CoreError {
  return new CoreError(
    "idempotency-in-progress",
    "The first request with this Idempotency-Key is not done yet; wait for its answer, or ask again later.",
    { param: "Idempotency-Key" },
  );
}

function isBeingAccepted({ expiresAt }: IdempotencyRecord, now: number): boolean {
  return now < expiresAt - keptMs + acceptanceMs;
}

function refuseOther(holder: IdempotencyRecord, bodySha256: string): void {
  if (holder.bodySha256 === bodySha256) return;
  throw new CoreError(
    "idempotency-mismatch",
    "This Idempotency-Key came with another request before; use a new key for a new request.",
    { param: "Idempotency-Key" },
  );
}
