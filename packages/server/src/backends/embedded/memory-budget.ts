import { setImmediate } from "node:timers/promises";
import { CoreError } from "@plenum/core";

/** A model as the budget sees it. */
export interface Resident {
  readonly name: string;
  /** Bytes that it takes now; undefined: it is not loaded. */
  readonly residentBytes: number | undefined;
  /** True: loaded, and nobody uses it. */
  readonly isIdle: boolean;
  /** Milliseconds since the epoch. */
  readonly lastUsedMs: number;
  /** Ends it; resolves when its memory is free. */
  evict(): Promise<void>;
}

export interface MemoryBudgetOptions {
  /** Bytes that all models may take together. */
  readonly limitBytes: number;
  /** Bytes that the machine or its container has free now. */
  readonly freeBytes: () => number;
  readonly residents: () => readonly Resident[];
  /** Told before a model is ended for another one. */
  readonly onEvict: (evicted: string, forModel: string) => void;
}

interface Loading {
  readonly bytes: number;
  readonly ended: Promise<void>;
}

/**
 * Lets a model load when it fits into the budget and into what is free. Idle models make room, longest unused first, and
 * only when that is enough; one in use never does. One that is loading counts with its estimate, and is waited for when it
 * may make room afterwards.
 */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;
  readonly #loading = new Map<Resident, Loading>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: MemoryBudgetOptions) {
    this.#options = options;
  }

  /**
   * Takes so many bytes for a model that is about to load. One at a time decides, in order of asking.
   * @returns a function to be called once it is loaded, or failed to.
   * @throws CoreError insufficient-memory with the bytes that could be had and those that are needed.
   */
  reserve(resident: Resident, neededBytes: number): Promise<() => void> {
    const reserved = this.#last.then(() => this.#reserve(resident, neededBytes));
    this.#last = reserved.catch(() => undefined);
    return reserved;
  }

  async #reserve(resident: Resident, neededBytes: number): Promise<() => void> {
    for (;;) {
      const { roomBytes, mostBytes, idle } = this.#look(resident);
      if (neededBytes <= roomBytes) return this.#take(resident, neededBytes);
      const [oldest] = idle;
      if (oldest !== undefined && neededBytes <= mostBytes) {
        this.#options.onEvict(oldest.name, resident.name);
        await oldest.evict();
      } else if (this.#loading.size > 0) {
        await Promise.race([...this.#loading.values()].map(({ ended }) => ended));
        // Whoever only wanted it loaded lets go of it in this turn.
        await setImmediate();
      } else throw this.#tooLarge(resident, neededBytes, mostBytes);
    }
  }

  #look(resident: Resident) {
    const others = this.#options.residents().filter((other) => other !== resident);
    const idle = others.filter((other) => other.isIdle).sort((a, b) => a.lastUsedMs - b.lastUsedMs);
    const loading = sum([...this.#loading.values()].map(({ bytes }) => bytes));
    const resting = sum(idle.map(({ residentBytes = 0 }) => residentBytes));
    const taken = sum(
      others.filter((other) => !this.#loading.has(other)).map(({ residentBytes = 0 }) => residentBytes),
    );
    const free = this.#options.freeBytes() - loading;
    const left = this.#options.limitBytes - taken - loading;
    return { idle, roomBytes: Math.min(left, free), mostBytes: Math.min(left + resting, free + resting) };
  }

  #take(resident: Resident, bytes: number): () => void {
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#loading.set(resident, { bytes, ended });
    return () => {
      this.#loading.delete(resident);
      end();
    };
  }

  #tooLarge({ name }: Resident, requested: number, mostBytes: number): CoreError {
    const limit = Math.max(0, Math.round(mostBytes));
    const megabytes = (bytes: number) => Math.round(bytes / 1e6);
    const isBudget = requested > this.#options.limitBytes;
    const detail =
      `${name} needs about ${megabytes(requested)} MB, and ${megabytes(limit)} MB can be had` +
      (isBudget ? ` of a budget of ${megabytes(this.#options.limitBytes)} MB` : "") +
      "; lower its context_tokens or parallel, raise embedded.memory_budget, or wait until other models are idle.";
    return new CoreError("insufficient-memory", detail, { model: name, limit, requested });
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
