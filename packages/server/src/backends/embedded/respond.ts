import { type BackendEvent, type BackendRequest, type BackendSink, CoreError } from "@plenum/core";
import { shorten } from "../shared/shorten.ts";
import type { OutputParser } from "./chat-format/index.ts";
import { callEngine } from "./engine-call.ts";
import { requestError } from "./errors.ts";
import type { CandidateUsage, EngineEvent } from "./messages.ts";
import type { RunningModel } from "./model-runner.ts";
import { engineRequest } from "./request.ts";

export interface RespondOptions {
  readonly running: RunningModel;
  readonly request: BackendRequest;
  readonly sink: BackendSink;
  readonly signal: AbortSignal;
  /** Milliseconds waited for the model; undefined when it was loaded. */
  readonly loadMs: number | undefined;
}

/** Runs one request on a loaded model to its end. @throws CoreError; the signal's reason */
export async function respondOn(options: RespondOptions): Promise<void> {
  let { request } = options;
  for (;;) {
    try {
      await attempt({ ...options, request });
      return;
    } catch (error) {
      const isTooLong = error instanceof CoreError && error.code === "context-length-exceeded";
      if (!isTooLong || request.truncation !== "oldest") throw error;
      request = shorten(request, error);
    }
  }
}

async function attempt(options: RespondOptions): Promise<void> {
  const { running, request, signal } = options;
  const prepared = engineRequest(request, running.format);
  const parsers = Array.from({ length: request.candidates }, (_, candidate) => prepared.createParser(candidate));
  const reader = new AnswerReader(options, parsers);
  const onEvent = (event: EngineEvent) => reader.take(event);
  await callEngine({ engine: running.engine, message: (id) => prepared.message(id), onEvent, signal });
}

/** Makes core events of the child's. */
class AnswerReader {
  readonly #options: RespondOptions;
  readonly #parsers: readonly OutputParser[];
  readonly #usages: CandidateUsage[] = [];
  #reasoningTokens = 0;

  constructor(options: RespondOptions, parsers: readonly OutputParser[]) {
    this.#options = options;
    this.#parsers = parsers;
  }

  /** @returns true at the end of the last candidate. @throws CoreError for a failed request */
  take(event: EngineEvent): boolean {
    switch (event.type) {
      case "accepted": {
        const { loadMs } = this.#options;
        const { inputTokens } = event;
        this.#give([{ type: "accepted", inputTokens, ...(loadMs === undefined ? {} : { loadMs }) }]);
        return false;
      }
      case "prompt": {
        const { doneTokens, totalTokens } = event;
        this.#give([{ type: "progress", progress: { kind: "prompt", doneTokens, totalTokens } }]);
        return false;
      }
      case "text": {
        const events = this.#parser(event.candidate).push(event.text, event.logprobs);
        if (isReasoning(events)) this.#reasoningTokens += event.tokens;
        this.#give(events);
        return false;
      }
      case "done":
        this.#give(this.#parser(event.candidate).end(event.reason === "length" ? "length" : "stop", event.reason));
        this.#usages.push(event.usage);
        return this.#endWhenAllAreDone();
      case "failed":
        throw requestError(event.failure, this.#options.request.model, this.#options.running.engine.log);
      case "embedded":
        throw new TypeError("a text model answered with vectors");
    }
  }

  #endWhenAllAreDone(): boolean {
    const usages = this.#usages;
    if (usages.length < this.#parsers.length) return false;
    const first = usages.reduce((a, b) => (b.cachedTokens < a.cachedTokens ? b : a));
    const outputTokens = usages.reduce((sum, usage) => sum + usage.outputTokens, 0);
    this.#give([
      {
        type: "usage",
        usage: {
          inputTokens: first.inputTokens,
          outputTokens,
          cachedInputTokens: first.cachedTokens,
          reasoningTokens: this.#reasoningTokens,
        },
        promptMs: first.promptMs,
        generationMs: Math.max(...usages.map((usage) => usage.generationMs)),
      },
    ]);
    return true;
  }

  #parser(candidate: number): OutputParser {
    const parser = this.#parsers[candidate];
    if (parser === undefined) throw new TypeError(`the engine answered for candidate ${candidate}, which is none`);
    return parser;
  }

  #give(events: readonly BackendEvent[]): void {
    if (events.length > 0) this.#options.sink(events);
  }
}

function isReasoning(events: readonly BackendEvent[]): boolean {
  return events.some((event) => event.type === "reasoning") && !events.some((event) => event.type === "text");
}
