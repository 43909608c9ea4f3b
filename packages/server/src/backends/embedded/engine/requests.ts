import { performance } from "node:perf_hooks";
import type { CandidateUsage, EndReason, EngineEvent, EngineFailure, GenerateMessage } from "../messages.ts";
import type { AddonSampler } from "./addon.ts";
import { EngineError, toFailure } from "./engine-error.ts";
import type { LoadedModel } from "./model.ts";
import type { OutputPiece } from "./output-text.ts";
import { promptTokens } from "./prompt-tokens.ts";
import { type ActiveRequest, Run } from "./run.ts";
import { samplerConfig } from "./sampling.ts";
import { type Slot, Slots } from "./slots.ts";

const aborted: EngineFailure = { kind: "aborted", message: "aborted" };

/** Requests from their message to their last event: queue, slots, ends. Nothing here touches a running pass. */
export class Requests {
  readonly slots: Slots<Run>;
  readonly #model: LoadedModel;
  readonly #active = new Map<number, ActiveRequest>();
  #queue: Run[] = [];
  #events: EngineEvent[] = [];

  constructor(model: LoadedModel) {
    this.#model = model;
    this.slots = new Slots(model.context, model.config.parallel, model.windowTokens);
  }

  get hasQueued(): boolean {
    return this.#queue.length > 0;
  }

  /** True: a request waits until another one gives its slot back. */
  get areOthersWaiting(): boolean {
    return !this.slots.hasFree && this.#queue.some((run) => !run.isFollower);
  }

  /** Tokenises and queues a request; what is wrong with it comes back as its `failed` event. */
  submit(message: GenerateMessage): void {
    try {
      const request = newRequest(
        message,
        this.#readPrompt(message),
        this.#model.vocabulary.numbersOf(message.visibleTokens),
      );
      this.#active.set(message.id, request);
      this.#queue.push(...request.runs);
    } catch (error) {
      this.#events.push({ type: "failed", id: message.id, failure: toFailure(error) });
    }
  }

  /** Takes effect at the next `dropAborted`. Always answered: a request that has just ended is `failed` too. */
  abort(id: number): void {
    const request = this.#active.get(id);
    if (request !== undefined) request.isAborted = true;
    else this.#events.push({ type: "failed", id, failure: aborted });
  }

  dropAborted(): void {
    for (const request of this.#active.values()) {
      if (request.isAborted) this.fail(request, aborted);
    }
  }

  /** Gives free slots to queued candidates in order of arrival. */
  async admit(): Promise<void> {
    const waiting = this.#queue;
    this.#queue = [];
    const left: Run[] = [];
    for (const run of waiting) {
      if (!run.request.runs.has(run)) continue;
      if (!this.slots.hasFree || run.isFollower) left.push(run);
      else await this.#start(run);
    }
    this.#queue = [...left.filter((run) => run.request.runs.has(run)), ...this.#queue];
  }

  push(event: EngineEvent): void {
    this.#events.push(event);
  }

  pushText(run: Run, piece: OutputPiece): void {
    const { text, tokens, logprobs } = piece;
    const event = { type: "text", id: run.request.message.id, candidate: run.candidate, text, tokens } as const;
    this.#events.push(logprobs === undefined ? event : { ...event, logprobs });
  }

  finish(run: Run, reason: EndReason): void {
    const rest = reason === "stop_string" ? undefined : run.output.end();
    if (rest !== undefined) this.pushText(run, rest);
    const { id } = run.request.message;
    this.#events.push({ type: "done", id, candidate: run.candidate, reason, usage: usageOf(run) });
    this.#free(run);
    if (run.request.runs.size === 0) this.#active.delete(id);
  }

  /** Ends a request with all its candidates. Must not be called while one of them is being sampled. */
  fail(request: ActiveRequest, failure: EngineFailure): void {
    const { id } = request.message;
    if (!this.#active.delete(id)) return;
    for (const run of [...request.runs]) this.#free(run);
    this.#events.push({ type: "failed", id, failure });
  }

  takeEvents(): EngineEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #readPrompt(message: GenerateMessage): number[] {
    const { contextTokens } = this.#model.config;
    const prompt = promptTokens(message.prompt, this.#model.tokenizer, contextTokens);
    if (prompt.length < contextTokens) return prompt;
    const numbers = { limit: contextTokens, requested: prompt.length };
    throw new EngineError("context-length", `The prompt has ${prompt.length} tokens.`, numbers);
  }

  async #start(run: Run): Promise<void> {
    const { request } = run;
    try {
      run.sampler = this.#makeSampler(run);
    } catch (error) {
      this.fail(request, toFailure(error));
      return;
    }
    const slot = await this.slots.take(run, request.prompt);
    if (slot === undefined) throw new TypeError("a free slot was promised");
    this.#begin(run, slot);
    if (run.maxTokens === 0) this.finish(run, "length");
  }

  #begin(run: Run, slot: Slot<Run>): void {
    const { request } = run;
    run.slot = slot;
    run.readTokens = slot.cache.length;
    run.cachedTokens = slot.cache.length;
    run.startedAt = performance.now();
    if (request.isAccepted) return;
    request.isAccepted = true;
    this.#events.push({ type: "accepted", id: request.message.id, inputTokens: request.prompt.length });
  }

  #makeSampler(run: Run): AddonSampler {
    const { message, prompt } = run.request;
    const { contextTokens, vocabularySize } = this.#model.config;
    const config = samplerConfig(message.sampling, run.candidate, prompt, { contextTokens, vocabularySize });
    if (message.grammar !== undefined) config.grammarEvaluationState = this.#model.makeGrammar(message.grammar);
    return this.#model.makeSampler(config);
  }

  #free(run: Run): void {
    run.sampler?.dispose();
    run.sampler = undefined;
    if (run.slot !== undefined) this.slots.release(run.slot);
    run.slot = undefined;
    run.request.runs.delete(run);
  }
}

function newRequest(
  message: GenerateMessage,
  prompt: readonly number[],
  visibleTokens: ReadonlySet<number>,
): ActiveRequest {
  const request: ActiveRequest = {
    message,
    prompt,
    visibleTokens,
    runs: new Set(),
    isAborted: false,
    isAccepted: false,
    isPromptRead: false,
  };
  for (let candidate = 0; candidate < message.candidates; candidate++) request.runs.add(new Run(request, candidate));
  return request;
}

function usageOf(run: Run): CandidateUsage {
  const now = performance.now();
  const startedAt = run.startedAt === 0 ? now : run.startedAt;
  const firstTokenAt = run.firstTokenAt === 0 ? now : run.firstTokenAt;
  return {
    inputTokens: run.request.prompt.length,
    cachedTokens: run.cachedTokens,
    outputTokens: run.sampledTokens,
    promptMs: firstTokenAt - startedAt,
    generationMs: now - firstTokenAt,
  };
}
