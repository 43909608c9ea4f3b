import type { TokenLogprob } from "@plenum/core";
import { StopMatcher } from "./stop-matcher.ts";

/** Text that may leave now, with the log probabilities of the tokens it came from. */
export interface OutputPiece {
  readonly text: string;
  readonly tokens: number;
  readonly logprobs?: readonly TokenLogprob[];
  /** True: a stop text was found, and this is the last piece. */
  readonly isStopped: boolean;
}

interface PendingLogprob {
  readonly logprob: TokenLogprob;
  /** Place of the token's text in the whole text, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
}

/**
 * Makes text of one candidate's tokens: joins characters that are cut over tokens, looks for stop texts, and keeps
 * each token's log probability with its text.
 */
export class OutputText {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #matcher: StopMatcher;
  #pending: PendingLogprob[] = [];
  #decoded = 0;
  #given = 0;
  #tokens = 0;

  constructor(stops: readonly string[]) {
    this.#matcher = new StopMatcher(stops);
  }

  /** @returns undefined while there is nothing to give out. */
  push(bytes: Uint8Array, logprob?: TokenLogprob): OutputPiece | undefined {
    this.#tokens += 1;
    const text = this.#decoder.decode(bytes, { stream: true });
    if (logprob !== undefined) {
      this.#pending.push({ logprob, start: this.#decoded, end: this.#decoded + text.length });
    }
    this.#decoded += text.length;
    const step = this.#matcher.push(text);
    if (step.hit === undefined && step.text === "") return undefined;
    return this.#piece(step.text, step.hit !== undefined);
  }

  /** Gives out what was held back for a stop text. Bytes of a character that never became whole are left out. */
  end(): OutputPiece | undefined {
    const text = this.#matcher.end();
    return text === "" && this.#pending.length === 0 ? undefined : this.#piece(text, false);
  }

  #piece(text: string, isStopped: boolean): OutputPiece {
    this.#given += text.length;
    const tokens = this.#tokens;
    this.#tokens = 0;
    const logprobs = this.#takeLogprobs(isStopped);
    return logprobs.length > 0 ? { text, tokens, logprobs, isStopped } : { text, tokens, isStopped };
  }

  /** Those whose text has left in full; at a stop text, those whose text began before it. */
  #takeLogprobs(isStopped: boolean): TokenLogprob[] {
    if (this.#pending.length === 0) return [];
    const leaves = isStopped
      ? (entry: PendingLogprob) => entry.start < this.#given
      : (entry: PendingLogprob) => entry.end <= this.#given;
    const taken = this.#pending.filter(leaves).map((entry) => entry.logprob);
    this.#pending = isStopped ? [] : this.#pending.filter((entry) => !leaves(entry));
    return taken;
  }
}
