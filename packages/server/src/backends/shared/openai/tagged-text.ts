import type { BackendEvent, TokenLogprob } from "@plenum/core";
import { HeldText } from "../held-text.ts";
import { ThinkReader } from "../think-reader.ts";
import { knownThinkTags } from "../think-tags.ts";

/** Text of one candidate, with thoughts in tags at its beginning taken out, also when the tags are cut over deltas. */
export class TaggedText {
  readonly #candidate: number;
  readonly #held = new HeldText();
  #reader: ThinkReader | undefined;
  #isPlain = false;

  /** @param mayHaveThoughts false: the server takes thoughts out itself, or the text is no chat's */
  constructor(candidate: number, mayHaveThoughts: boolean) {
    this.#candidate = candidate;
    this.#isPlain = !mayHaveThoughts;
  }

  push(delta: string, logprobs: readonly TokenLogprob[], events: BackendEvent[]): void {
    if (this.#isPlain) {
      this.#give(delta, logprobs, events);
      return;
    }
    this.#held.append(delta, logprobs);
    this.#read(false, events);
  }

  /** From here on all is text: the thoughts came in a field of their own. */
  noteOwnThoughts(events: BackendEvent[]): void {
    if (this.#isPlain || this.#reader !== undefined) return;
    this.#endHolding(events);
  }

  end(events: BackendEvent[]): void {
    if (!this.#isPlain) this.#read(true, events);
    if (!this.#isPlain) this.#endHolding(events);
  }

  #read(isEnd: boolean, events: BackendEvent[]): void {
    if (this.#reader === undefined) {
      const begun = this.#held.text.trimStart();
      const tags = knownThinkTags.find(({ open }) => begun.startsWith(open));
      if (tags === undefined) {
        const mayCome = !isEnd && knownThinkTags.some(({ open }) => open.startsWith(begun));
        if (!mayCome) this.#endHolding(events);
        return;
      }
      this.#reader = new ThinkReader(this.#held, tags, "maybe");
    }
    const thoughts = this.#reader.read(isEnd);
    if (thoughts !== "") events.push({ type: "reasoning", candidate: this.#candidate, delta: thoughts });
    if (this.#reader.isDone) this.#endHolding(events);
  }

  #endHolding(events: BackendEvent[]): void {
    this.#isPlain = true;
    const { text, logprobs } = this.#held.takeAll();
    this.#give(text, logprobs, events);
  }

  #give(delta: string, logprobs: readonly TokenLogprob[], events: BackendEvent[]): void {
    const candidate = this.#candidate;
    if (logprobs.length > 0) events.push({ type: "text", candidate, delta, logprobs });
    else if (delta !== "") events.push({ type: "text", candidate, delta });
  }
}
