import type { Clock } from "../clock.ts";
import type { ServerLimits } from "../limits.ts";

const tokenBytes = 24;

interface Kept {
  readonly id: number;
  readonly data: unknown;
  readonly until: number;
}

/** Sessions that lost their connection and may come back, by their token. A token is good once. */
export class ResumableSessions {
  readonly #clock: Clock;
  readonly #limits: ServerLimits;
  /** In order of their end, since all wait equally long. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock, limits: ServerLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Undefined when nothing is ever resumed. */
  makeToken(): Uint8Array | undefined {
    if (this.#limits.resumeWindowMs === 0) return undefined;
    return globalThis.crypto.getRandomValues(new Uint8Array(tokenBytes));
  }

  keep(session: { readonly id: number; readonly data: unknown; readonly resumeToken: Uint8Array | undefined }): void {
    if (session.resumeToken === undefined || this.#limits.resumableSessions === 0) return;
    this.forgetExpired();
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size < this.#limits.resumableSessions) break;
      this.#kept.delete(oldest);
    }
    const until = this.#clock.now() + this.#limits.resumeWindowMs;
    this.#kept.set(key(session.resumeToken), { id: session.id, data: session.data, until });
  }

  /** Gives a kept session back, once. */
  take(id: number, token: Uint8Array): { readonly data: unknown } | undefined {
    const name = key(token);
    const kept = this.#kept.get(name);
    if (kept === undefined || kept.id !== id) return undefined;
    this.#kept.delete(name);
    return kept.until > this.#clock.now() ? { data: kept.data } : undefined;
  }

  forgetExpired(): void {
    const now = this.#clock.now();
    for (const [name, { until }] of this.#kept) {
      if (until > now) return;
      this.#kept.delete(name);
    }
  }

  clear(): void {
    this.#kept.clear();
  }

  get size(): number {
    return this.#kept.size;
  }
}

const key = (token: Uint8Array) => Array.from(token, (byte) => String.fromCharCode(byte)).join("");
