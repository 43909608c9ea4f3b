import { type HeldText, heldBack } from "./held-text.ts";
import type { ThinkStart, ThinkTags } from "./think-tags.ts";

type State = "before" | "inside" | "behind" | "done";

/**
 * Takes the thoughts off the beginning of an answer. White space around them and the tags belong to neither side.
 * Thoughts stand only at the beginning: tags further on are text.
 */
export class ThinkReader {
  readonly #held: HeldText;
  readonly #tags: ThinkTags | undefined;
  #state: State;
  #hasThoughts = false;

  constructor(held: HeldText, tags: ThinkTags | undefined, start: ThinkStart) {
    this.#held = held;
    this.#tags = tags;
    this.#state = tags === undefined ? "done" : start === "inside" ? "inside" : "before";
  }

  /** True when what is held is text of the answer. */
  get isDone(): boolean {
    return this.#state === "done";
  }

  /** Reads on in the held text. @param isEnd true: nothing follows @returns thoughts that may go out */
  read(isEnd: boolean): string {
    if (this.#tags === undefined || this.#state === "done") return "";
    if (this.#state === "before") this.#findOpen(this.#tags, isEnd);
    const thoughts = this.#isInside() ? this.#takeThoughts(this.#tags, isEnd) : "";
    if (this.#isBehind()) this.#skipSpace(isEnd);
    return thoughts;
  }

  #isInside(): boolean {
    return this.#state === "inside";
  }

  #isBehind(): boolean {
    return this.#state === "behind";
  }

  #findOpen({ open }: ThinkTags, isEnd: boolean): void {
    const { text } = this.#held;
    const space = text.length - text.trimStart().length;
    const rest = text.slice(space);
    if (rest.startsWith(open)) {
      this.#held.take(space + open.length);
      this.#state = "inside";
    } else if (isEnd || !open.startsWith(rest)) this.#state = "done";
  }

  #takeThoughts({ close }: ThinkTags, isEnd: boolean): string {
    if (!this.#hasThoughts) this.#held.take(this.#held.text.length - this.#held.text.trimStart().length);
    const { text } = this.#held;
    const at = text.indexOf(close);
    if (at >= 0) {
      this.#held.take(at + close.length);
      this.#state = "behind";
      return text.slice(0, at).trimEnd();
    }
    const free = isEnd ? text : text.slice(0, text.length - heldBack(text, [close]));
    const thoughts = free.trimEnd();
    this.#held.take(isEnd ? text.length : thoughts.length);
    this.#hasThoughts ||= thoughts !== "";
    return thoughts;
  }

  #skipSpace(isEnd: boolean): void {
    const { text } = this.#held;
    const rest = text.trimStart();
    this.#held.take(text.length - rest.length);
    if (rest !== "" || isEnd) this.#state = "done";
  }
}
