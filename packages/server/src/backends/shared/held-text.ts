import type { TokenLogprob } from "@plenum/core";

interface Cell {
  length: number;
  logprobs: readonly TokenLogprob[];
}

/** Text as it is given out, with the log probabilities of the tokens that begin in it. */
export interface TakenText {
  readonly text: string;
  readonly logprobs: readonly TokenLogprob[];
}

/** Text that has come but is not yet given out. Each token's log probabilities stay with its first character. */
export class HeldText {
  text = "";
  #cells: Cell[] = [];

  append(text: string, logprobs: readonly TokenLogprob[] = []): void {
    this.text += text;
    const fits = logprobs.map((each) => each.token).join("") === text;
    if (fits) for (const each of logprobs) this.#cells.push({ length: each.token.length, logprobs: [each] });
    else this.#cells.push({ length: text.length, logprobs });
  }

  /** Takes the first `length` UTF-16 units. */
  take(length: number): TakenText {
    const taken = this.text.slice(0, length);
    this.text = this.text.slice(length);
    const logprobs: TokenLogprob[] = [];
    let rest = taken.length;
    let done = 0;
    for (const cell of this.#cells) {
      // An empty cell (a token that is only part of a character) goes with the character that it began.
      if (rest === 0 && (this.text !== "" || cell.length > 0)) break;
      logprobs.push(...cell.logprobs);
      cell.logprobs = [];
      const used = Math.min(cell.length, rest);
      cell.length -= used;
      rest -= used;
      if (cell.length > 0) break;
      done += 1;
    }
    if (done > 0) this.#cells = this.#cells.slice(done);
    return { text: taken, logprobs };
  }

  takeAll(): TakenText {
    return this.take(this.text.length);
  }
}

/** How many units at the end of `text` may be the beginning of one of `markers`. */
export function heldBack(text: string, markers: readonly string[]): number {
  let longest = 0;
  for (const marker of markers) {
    for (let length = Math.min(marker.length - 1, text.length); length > longest; length -= 1) {
      if (text.endsWith(marker.slice(0, length))) longest = length;
    }
  }
  return longest;
}
