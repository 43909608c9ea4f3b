import type { BackendEvent, BackendRequest, TokenLogprob } from "@plenum/core";

/** A stretch of the prompt that is tokenised in one way. */
export interface PromptPiece {
  readonly text: string;
  /** True: special-token texts in it become control tokens. False: it is a client's text and stays text. */
  readonly parseSpecial: boolean;
}

/** A prompt as the model's format wants it. */
export interface RenderedPrompt {
  /** In order; neighbours never have the same `parseSpecial`, and none is empty. */
  readonly pieces: readonly PromptPiece[];
  /** GBNF that the output has to follow; the root rule is `root`. */
  readonly grammar?: string;
  /** Stop texts of the format, beside the request's own. */
  readonly stop: readonly string[];
}

/** Turns the text of one candidate into core events. Holds back only what may be the beginning of a marker. */
export interface OutputParser {
  /** @param logprobs of the tokens that this text came from; they travel with the text they belong to. */
  push(text: string, logprobs?: readonly TokenLogprob[]): BackendEvent[];
  /**
   * Gives out what was held back, validates, and ends with the candidate's `finish` event.
   * @throws CoreError invalid-output when the finished text does not fit the asked format.
   */
  end(finishReason: "stop" | "length", rawFinishReason: string): BackendEvent[];
}

/** How one model wants its conversations written and how its answers are read. Has no state of its own. */
export interface ChatFormat {
  readonly capabilities: {
    readonly tools: boolean;
    /** True: the template knows no tools; they are explained in a system text instead. */
    readonly toolsEmulated: boolean;
    readonly reasoning: boolean;
    readonly systemRole: boolean;
  };
  /**
   * Special tokens whose texts the output parser has to see (`[TOOL_CALLS]`, `<|python_tag|>`, `<think>` where they are
   * control tokens). All others that are sampled add no text.
   */
  readonly visibleTokens: readonly string[];
  /** @throws CoreError invalid-request, unsupported-capability */
  render(request: BackendRequest): RenderedPrompt;
  /** @param candidate number written into every event, from 0. */
  createOutputParser(request: BackendRequest, candidate: number): OutputParser;
}

export interface ChatFormatOptions {
  /** The model's Jinja chat template. Absent: ChatML. */
  readonly template?: string;
  /** Text of the token that begins a sequence. */
  readonly bosToken?: string;
  /** Text of the token that ends an answer. */
  readonly eosToken?: string;
  /** Texts of all control tokens of the vocabulary; in clients' texts they stay text. */
  readonly specialTokens: readonly string[];
}
