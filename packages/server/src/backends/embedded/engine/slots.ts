import type { AddonContext } from "./addon.ts";

/** One sequence of the context. `Owner` is whatever runs on it. */
export interface Slot<Owner> {
  readonly id: number;
  /** Tokens whose keys and values the cache holds, in order. */
  cache: number[];
  owner: Owner | undefined;
  /** Larger: used more lately. */
  usedAt: number;
}

type CacheCalls = Pick<
  AddonContext,
  | "disposeSequence"
  | "removeTokenCellsFromSequence"
  | "copySequenceStateFromOtherSequence"
  | "getSequenceKvCacheMinPosition"
>;

/** Fewer equal tokens than this are not worth keeping a slot for. */
const smallestReuseTokens = 16;

/** The sequences of one context: who has which, and what their caches still hold. */
export class Slots<Owner> {
  readonly all: readonly Slot<Owner>[];
  readonly #context: CacheCalls;
  readonly #windowTokens: number;
  #clock = 0;

  /** @param windowTokens of the model's sliding window; 0: every layer sees all */
  constructor(context: CacheCalls, count: number, windowTokens = 0) {
    this.#context = context;
    this.#windowTokens = windowTokens;
    this.all = Array.from({ length: count }, (_, id) => ({ id, cache: [], owner: undefined, usedAt: 0 }));
  }

  /** In ascending order of their ids. */
  get busy(): Slot<Owner>[] {
    return this.all.filter((slot) => slot.owner !== undefined);
  }

  get hasFree(): boolean {
    return this.all.some((slot) => slot.owner === undefined);
  }

  /**
   * Gives a free slot to an owner, with as much of the prompt as a cache still holds: its own, or a copy of a busy
   * one's. The last token is always read again, for its logits.
   * @returns undefined when no slot is free.
   */
  async take(owner: Owner, prompt: readonly number[]): Promise<Slot<Owner> | undefined> {
    const best = this.#longestPrefix(prompt);
    const isOwn = best !== undefined && best.slot.owner === undefined;
    const slot = isOwn ? best.slot : this.#longestUnused();
    if (slot === undefined) return undefined;
    slot.owner = owner;
    if (best !== undefined && !isOwn) await this.#copy(slot, best.slot);
    this.#keep(slot, best?.tokens ?? 0);
    return slot;
  }

  /** Frees a slot; its cache stays for later prompts. */
  release(slot: Slot<Owner>): void {
    slot.owner = undefined;
    slot.usedAt = ++this.#clock;
  }

  /** Forgets what a slot's cache holds, after a failed pass. */
  clear(slot: Slot<Owner>): void {
    this.#keep(slot, 0);
  }

  /**
   * Moves busy sequences until their ids have no gap: llama.cpp takes only consecutive ids into one pass.
   * @param onMove tells the owner about its new slot
   */
  async closeGaps(onMove: (owner: Owner, slot: Slot<Owner>) => void): Promise<void> {
    for (;;) {
      const { busy } = this;
      const lowest = busy[0];
      const highest = busy.at(-1);
      if (lowest === undefined || highest === undefined || highest.id - lowest.id === busy.length - 1) return;
      const hole = this.all.find((slot) => slot.id > lowest.id && slot.owner === undefined);
      const owner = highest.owner;
      if (hole === undefined || owner === undefined) return;
      hole.owner = owner;
      await this.#copy(hole, highest);
      this.release(highest);
      onMove(owner, hole);
    }
  }

  async #copy(target: Slot<Owner>, source: Slot<Owner>): Promise<void> {
    this.#context.disposeSequence(target.id);
    target.cache = [];
    if (source.cache.length === 0) return;
    await this.#context.copySequenceStateFromOtherSequence(target.id, source.id);
    target.cache = [...source.cache];
  }

  #keep(slot: Slot<Owner>, tokens: number): void {
    let kept = tokens;
    if (slot.cache.length > kept && kept > 0 && !this.#cut(slot.id, kept)) kept = 0;
    if (kept === 0) this.#context.disposeSequence(slot.id);
    slot.cache.length = kept;
  }

  /** @returns false where the model can't go on from there: the prompt has to be read again */
  #cut(id: number, tokens: number): boolean {
    // Layers with a sliding window have forgotten what was before it; all that the next token sees must still be there.
    const isHeld = this.#context.getSequenceKvCacheMinPosition(id) <= Math.max(0, tokens - this.#windowTokens);
    return isHeld && this.#context.removeTokenCellsFromSequence(id, tokens, -1);
  }

  #longestPrefix(prompt: readonly number[]): { slot: Slot<Owner>; tokens: number } | undefined {
    let best: { slot: Slot<Owner>; tokens: number } | undefined;
    for (const slot of this.all) {
      const tokens = commonPrefix(slot.cache, prompt);
      const isBetter = tokens > (best?.tokens ?? smallestReuseTokens - 1);
      const isFreer = best !== undefined && tokens === best.tokens && best.slot.owner !== undefined;
      if (isBetter || (isFreer && slot.owner === undefined)) best = { slot, tokens };
    }
    return best;
  }

  #longestUnused(): Slot<Owner> | undefined {
    let oldest: Slot<Owner> | undefined;
    for (const slot of this.all) {
      if (slot.owner === undefined && (oldest === undefined || slot.usedAt < oldest.usedAt)) oldest = slot;
    }
    return oldest;
  }
}

/** Tokens that a cache and a prompt begin with alike, the prompt's last token never counted. */
function commonPrefix(cache: readonly number[], prompt: readonly number[]): number {
  const most = Math.min(cache.length, prompt.length - 1);
  let tokens = 0;
  while (tokens < most && cache[tokens] === prompt[tokens]) tokens += 1;
  return tokens;
}
