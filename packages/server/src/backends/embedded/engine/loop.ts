import { performance } from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import type { EngineEvent, GenerateMessage } from "../messages.ts";
import { EngineError, toFailure } from "./engine-error.ts";
import { Governor } from "./governor.ts";
import { LogprobReader } from "./logprobs.ts";
import type { LoadedModel } from "./model.ts";
import { gatheringMs, planReading, type ReadingRate, ReadingRates } from "./plan.ts";
import { Requests } from "./requests.ts";
import type { Run } from "./run.ts";

const warmUpPasses = 3;

interface BatchItem {
  readonly run: Run;
  readonly tokens: readonly number[];
  /** True: the last token's logits are wanted. */
  readonly wantsToken: boolean;
}

interface Step {
  readonly items: readonly BatchItem[];
  /** Learns how fast prompts were read; undefined: none is. */
  readonly rate: ReadingRate | undefined;
}

/**
 * The step loop of a text model: one full batch a step for all sequences, one list of events a step. Everything that
 * changes slots, samplers or the cache happens between two passes.
 */
export class GenerationLoop {
  readonly #model: LoadedModel;
  readonly #emit: (events: EngineEvent[]) => void;
  readonly #requests: Requests;
  readonly #logprobs: LogprobReader;
  readonly #rates: ReadingRates;
  readonly #governor: Governor;
  /** Milliseconds of the shortest pass of one token. */
  #passMs = Number.POSITIVE_INFINITY;
  #wake: (() => void) | undefined;
  /** When the idle engine woke; undefined: its first step is done. */
  #wokeAt: number | undefined;

  /** @param emit gets all events of a step at once, never an empty list */
  constructor(model: LoadedModel, emit: (events: EngineEvent[]) => void) {
    this.#model = model;
    this.#emit = emit;
    this.#requests = new Requests(model);
    this.#rates = new ReadingRates(model.threads);
    this.#governor = new Governor(model.threads, (threads) => {
      this.#rates.use(threads);
      model.context.setThreads(threads);
    });
    this.#logprobs = new LogprobReader(model.context, model.vocabulary, (config) => model.makeSampler(config));
  }

  /** Reads one token a few times, so that the first request finds the weights in memory and the steps' lengths known. */
  async warmUp(): Promise<void> {
    const { context } = this.#model;
    for (let pass = 0; pass < warmUpPasses; pass++) {
      const startedAt = performance.now();
      context.initBatch(1);
      context.addToBatch(0, 0, Uint32Array.of(0), new Uint32Array(0));
      await context.decodeBatch();
      context.disposeSequence(0);
      this.#passMs = Math.min(this.#passMs, performance.now() - startedAt);
    }
  }

  submit(message: GenerateMessage): void {
    this.#requests.submit(message);
    this.#wake?.();
  }

  /** Heard before the next pass; the request's `failed` event says when nothing of it is left. */
  abort(id: number): void {
    this.#requests.abort(id);
    this.#wake?.();
  }

  /** Runs for ever. */
  async run(): Promise<never> {
    const requests = this.#requests;
    for (;;) {
      requests.dropAborted();
      await requests.admit();
      await requests.slots.closeGaps((run, slot) => {
        run.slot = slot;
      });
      if (await this.#gathers()) continue;
      const step = this.#plan();
      if (step.items.length > 0) {
        await this.#step(step);
        continue;
      }
      this.#emitEvents();
      if (!requests.hasQueued) await this.#sleep();
    }
  }

  /** Lets what comes together be read together, where the engine was idle. @returns true: look who has come */
  async #gathers(): Promise<boolean> {
    if (this.#wokeAt === undefined) return false;
    const tokens = this.#runs.reduce((sum, run) => sum + run.remainingPrompt, 0);
    const left = this.#wokeAt + gatheringMs(tokens, this.#rates.at(0)) - performance.now();
    if (left >= 1 && this.#requests.slots.hasFree) {
      await wait(left);
      return true;
    }
    this.#wokeAt = undefined;
    return false;
  }

  get #runs(): Run[] {
    return this.#requests.slots.busy.flatMap((slot) => slot.owner ?? []);
  }

  /** One token of every decoding sequence and slices of the prompts, in ascending order of the sequences' ids. */
  #plan(): Step {
    const runs = this.#runs;
    const reading = runs.filter((run) => run.nextToken === undefined);
    const now = performance.now();
    const prompts = reading.map((run) => ({
      doneTokens: run.readTokens,
      remainingTokens: run.remainingPrompt,
      readingMs: now - run.startedAt,
    }));
    const load = {
      decoding: runs.length - reading.length,
      areOthersWaiting: this.#requests.areOthersWaiting,
      batchTokens: this.#model.batchTokens,
      passMs: this.#passMs,
    };
    const { slices, rate } = planReading(prompts, load, this.#rates);
    const items = runs.flatMap((run): BatchItem[] => {
      if (run.nextToken !== undefined) return [{ run, tokens: [run.nextToken], wantsToken: true }];
      const slice = slices[reading.indexOf(run)] ?? 0;
      if (slice === 0) return [];
      const end = run.readTokens + slice;
      const tokens = run.request.prompt.slice(run.readTokens, end);
      return [{ run, tokens, wantsToken: end === run.request.prompt.length }];
    });
    return { items, rate: reading.length > 0 ? rate : undefined };
  }

  async #step({ items, rate }: Step): Promise<void> {
    const startedAt = performance.now();
    const total = items.reduce((sum, item) => sum + item.tokens.length, 0);
    let places: (number | undefined)[];
    try {
      places = this.#fillBatch(items, total);
      this.#governor.beginPass();
      const pass = this.#model.context.decodeBatch();
      // What the last step made leaves while this one is computed.
      this.#emitEvents();
      await pass;
    } catch (error) {
      this.#failStep(items, error);
      return;
    }
    rate?.observe(total, performance.now() - startedAt);
    this.#governor.endPass(total);
    for (const { run, tokens } of items) this.#noteRead(run, tokens);
    await this.#sample(items, places);
  }

  /** @returns for each item the place of its wanted logits. */
  #fillBatch(items: readonly BatchItem[], total: number): (number | undefined)[] {
    const { context } = this.#model;
    context.initBatch(total);
    return items.map(({ run, tokens, wantsToken }) => {
      if (run.slot === undefined) throw new TypeError("a planned sequence has no slot");
      const wanted = wantsToken ? Uint32Array.of(tokens.length - 1) : new Uint32Array(0);
      return context.addToBatch(run.slot.id, run.slot.cache.length, Uint32Array.from(tokens), wanted)[0];
    });
  }

  #failStep(items: readonly BatchItem[], error: unknown): void {
    const slots = items.flatMap(({ run }) => run.slot ?? []);
    for (const request of new Set(items.map(({ run }) => run.request))) this.#requests.fail(request, toFailure(error));
    for (const slot of slots) this.#requests.slots.clear(slot);
  }

  #noteRead(run: Run, tokens: readonly number[]): void {
    for (const token of tokens) run.slot?.cache.push(token);
    if (run.nextToken !== undefined) return;
    const isFirstSlice = run.readTokens === run.cachedTokens;
    run.readTokens += tokens.length;
    const isRead = run.remainingPrompt === 0;
    const { request, readTokens: doneTokens } = run;
    if (isRead) request.isPromptRead = true;
    if (isRead && isFirstSlice) return;
    this.#requests.push({ type: "prompt", id: request.message.id, doneTokens, totalTokens: request.prompt.length });
  }

  /** Logits hold until the next pass, so all are sampled before it; what fails is ended when all have been. */
  async #sample(items: readonly BatchItem[], places: readonly (number | undefined)[]): Promise<void> {
    const sampled = items.map(async ({ run, wantsToken }, at) => {
      const place = places[at];
      if (wantsToken && place !== undefined && !run.request.isAborted) await this.#sampleOne(run, place);
    });
    const results = await Promise.allSettled(sampled);
    results.forEach((result, at) => {
      const request = items[at]?.run.request;
      if (result.status === "rejected" && request !== undefined) {
        this.#requests.fail(request, toFailure(result.reason));
      }
    });
  }

  async #sampleOne(run: Run, place: number): Promise<void> {
    const { context, vocabulary, config } = this.#model;
    if (run.sampler === undefined) throw new TypeError("a running sequence has no sampler");
    const token = await context.sampleToken(place, run.sampler);
    if (token < 0) throw new EngineError("engine", "no token could be chosen");
    if (run.sampledTokens === 0) run.firstTokenAt = performance.now();
    run.sampledTokens += 1;
    run.nextToken = token;
    if (vocabulary.isEnd(token)) {
      this.#requests.finish(run, "eos");
      return;
    }
    const { logprobs } = run.request.message;
    const logprob = logprobs === undefined ? undefined : await this.#logprobs.read(place, token, logprobs);
    const isVisible = run.request.visibleTokens.has(token);
    const bytes = isVisible ? vocabulary.listedBytes(token) : vocabulary.bytes(token);
    const piece = run.output.push(bytes, logprob);
    if (piece !== undefined) this.#requests.pushText(run, piece);
    const tokensNow = run.request.prompt.length + run.sampledTokens;
    if (piece?.isStopped) this.#requests.finish(run, "stop_string");
    else if (run.sampledTokens >= run.maxTokens || tokensNow >= config.contextTokens)
      this.#requests.finish(run, "length");
  }

  #emitEvents(): void {
    const events = this.#requests.takeEvents();
    if (events.length > 0) this.#emit(events);
  }

  async #sleep(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
    this.#wokeAt = performance.now();
  }
}
