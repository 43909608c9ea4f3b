import type { GenerateMessage } from "../messages.ts";
import type { AddonSampler } from "./addon.ts";
import { OutputText } from "./output-text.ts";
import type { Slot } from "./slots.ts";

/** One generate message that is being worked on. */
export interface ActiveRequest {
  readonly message: GenerateMessage;
  readonly prompt: readonly number[];
  /** Control tokens whose text is part of the answer. */
  readonly visibleTokens: ReadonlySet<number>;
  /** Candidates that have not ended. */
  readonly runs: Set<Run>;
  isAborted: boolean;
  isAccepted: boolean;
  /** Set by the first candidate that has read the prompt; the others then copy its cache. */
  isPromptRead: boolean;
}

/** One candidate: a prompt to read, then tokens to sample. */
export class Run {
  readonly request: ActiveRequest;
  readonly candidate: number;
  readonly output: OutputText;
  readonly maxTokens: number;
  slot: Slot<Run> | undefined;
  sampler: AddonSampler | undefined;
  /** Prompt tokens in the cache. */
  readTokens = 0;
  cachedTokens = 0;
  /** Sampled, not yet in the cache. */
  nextToken: number | undefined;
  sampledTokens = 0;
  startedAt = 0;
  firstTokenAt = 0;

  constructor(request: ActiveRequest, candidate: number) {
    this.request = request;
    this.candidate = candidate;
    this.output = new OutputText(request.message.stop);
    this.maxTokens = request.message.maxTokens ?? Number.POSITIVE_INFINITY;
  }

  get remainingPrompt(): number {
    return this.request.prompt.length - this.readTokens;
  }

  /** True: it waits for another candidate of its request to read the prompt. */
  get isFollower(): boolean {
    const { runs, isPromptRead, message } = this.request;
    if (isPromptRead || message.candidates === 1) return false;
    for (const run of runs) if (run !== this && run.slot !== undefined) return true;
    return false;
  }
}
