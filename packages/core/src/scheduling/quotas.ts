import type { Quota } from "../auth/principal.ts";
import type { Usage } from "../events/backend-events.ts";
import type { Clock } from "../ports/clock.ts";
import type { QuotaRefusal, QuotaStore } from "../ports/quota-store.ts";
import { CoreError } from "../problems/core-error.ts";

/** A request's place under its token's limits. */
export interface QuotaPlace {
  /** It was refused after all and counts nothing. */
  giveBack(): void;
  /** It has ended. @param tokens of its prompt and answer */
  end(tokens: number): void;
}

/** Limits of tokens at admission (LMSP §2). */
export class Quotas {
  readonly #store: QuotaStore;
  readonly #clock: Clock;
  readonly #detach: (promise: Promise<unknown>) => void;

  /** @param detach lets a promise run on by itself. */
  constructor(store: QuotaStore, clock: Clock, detach: (promise: Promise<unknown>) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#detach = detach;
  }

  /**
   * @throws CoreError rate-limited, with `retryAfterMs` where the window tells it; quota-exceeded where waiting can't help.
   */
  async take(quota: Quota): Promise<QuotaPlace> {
    const takenAt = this.#clock.now();
    const refusal = await this.#store.take(quota, takenAt);
    if (refusal !== undefined) throw problemOf(refusal);
    const { key } = quota;
    return {
      giveBack: () => this.#detach(this.#store.giveBack(key, takenAt)),
      end: (tokens) => this.#detach(this.#store.end(key, tokens, this.#clock.now())),
    };
  }
}

/** What a response counts under a limit of tokens. */
export function tokensOf(usage: Usage | undefined): number {
  return usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;
}

function problemOf({ limit, most, retryAfterMs }: QuotaRefusal): CoreError {
  const counted = words[limit];
  if (most === 0) {
    return new CoreError("quota-exceeded", `The token may use no ${counted}; ask the operator for more.`, { limit: 0 });
  }
  const detail = `The token may use ${most} ${counted}; ${retryAfterMs === undefined ? "wait until one has ended" : "wait and try again"}.`;
  return new CoreError("rate-limited", detail, {
    limit: most,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

const words: Readonly<Record<QuotaRefusal["limit"], string>> = {
  requests: "requests a minute",
  tokens: "tokens a minute",
  concurrency: "responses at once",
};
