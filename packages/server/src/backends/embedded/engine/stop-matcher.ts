export interface StopStep {
  /** Text that can be given out. */
  readonly text: string;
  /** The stop text that was found; the answer ends before it. */
  readonly hit?: string;
}

/** Finds stop texts in text that comes in pieces, holding back the longest tail that could begin one. */
export class StopMatcher {
  readonly #stops: readonly string[];
  #held = "";

  /** @param stops none empty */
  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  push(text: string): StopStep {
    if (this.#stops.length === 0) return { text };
    const all = this.#held + text;
    let hit: string | undefined;
    let cut = all.length + 1;
    for (const stop of this.#stops) {
      const at = all.indexOf(stop);
      if (at >= 0 && at < cut) {
        cut = at;
        hit = stop;
      }
    }
    if (hit !== undefined) {
      this.#held = "";
      return { text: all.slice(0, cut), hit };
    }
    const keep = this.#tailThatMayBegin(all);
    this.#held = keep > 0 ? all.slice(-keep) : "";
    return { text: keep > 0 ? all.slice(0, -keep) : all };
  }

  /** What is still held back: no stop text can follow any more. */
  end(): string {
    const rest = this.#held;
    this.#held = "";
    return rest;
  }

  #tailThatMayBegin(text: string): number {
    let longest = 0;
    for (const stop of this.#stops) {
      for (let length = Math.min(stop.length - 1, text.length); length > longest; length--) {
        if (text.endsWith(stop.slice(0, length))) longest = length;
      }
    }
    return longest;
  }
}
