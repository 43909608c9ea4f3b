import { type BackendModel, type BackendRequest, type BackendSink, CoreError } from "@plenum/core";
import type { ProfileCall } from "@plenum/profile";
import { OutputWatch } from "../shared/output-watch.ts";
import { shorten } from "../shared/shorten.ts";
import { endProblem } from "./errors.ts";
import type { Link } from "./link.ts";
import type { NnrpSettings } from "./options.ts";
import { toRunProgress } from "./progress.ts";
import { chatRequest, urgencyOptions } from "./request.ts";
import { AnswerReader } from "./stream.ts";

export interface RespondOptions {
  readonly link: Link;
  readonly settings: NnrpSettings;
  readonly request: BackendRequest;
  readonly model: BackendModel;
  /** Events should carry OpenAI's own chunks: there may be more in them. */
  readonly wantsChunks: boolean;
  readonly sink: BackendSink;
  readonly signal: AbortSignal;
}

/** Runs one request to its end. @throws CoreError; the signal's reason */
export async function respondAt(options: RespondOptions): Promise<void> {
  const { signal } = options;
  const output = new OutputWatch(options.sink);
  let { request } = options;
  for (;;) {
    try {
      await attempt({ ...options, request, sink: output.sink }, options.sink);
      return;
    } catch (error) {
      const isShort = error instanceof CoreError && error.code === "context-length-exceeded";
      if (!isShort || signal.aborted || output.hasBegun || request.truncation !== "oldest") throw error;
      request = shorten(request, error);
    }
  }
}

/** @param tell takes progress, which is no output. */
async function attempt(options: RespondOptions, tell: BackendSink): Promise<void> {
  const { link, settings, request, model, wantsChunks, sink, signal } = options;
  const isWhole = request.delivery === "whole";
  const place = await link.take(signal);
  try {
    const answer = new AnswerReader(request, sink);
    if (isWhole) {
      answer.accept({ isWhole: true });
      answer.flush();
    }
    const call = place.client.call("chat.completions.create", chatRequest(request, model, !isWhole), {
      ...urgencyOptions(request, Date.now()),
      openaiChunk: wantsChunks && !isWhole,
      onProgress: (told) => {
        const progress = toRunProgress(told);
        if (progress !== undefined) tell([{ type: "progress", progress }]);
      },
      signal,
    });
    const silence = new SilenceWatch(call, isWhole ? settings.wholeTimeoutMs : settings.headTimeoutMs);
    await read(call, answer, silence, settings);
    signal.throwIfAborted();
    silence.throwIfLate();
    finish(call, answer, request);
  } finally {
    place.release();
  }
}

/** Reads a call to its end. When it returns, the service has no work with it any more, or does not say so in time. */
async function read(
  call: ProfileCall,
  answer: AnswerReader,
  silence: SilenceWatch,
  settings: NnrpSettings,
): Promise<void> {
  try {
    for await (const event of call) {
      silence.note(settings.silenceTimeoutMs);
      if (event.type === "response.completed" || event.type === "response.error") break;
      if (event.type !== "response.cancelled") answer.take(event);
    }
  } finally {
    silence.end();
    answer.flush();
    await call.operation?.ended;
  }
}

function finish(call: ProfileCall, answer: AnswerReader, request: BackendRequest): void {
  const { end } = call;
  const { model, deadlineMs } = request;
  if (end === undefined) throw new CoreError("backend-error", "The runtime's answer has no end.", { model });
  if (end.event.type !== "response.completed") {
    throw endProblem(call, end, { model, hasDeadline: deadlineMs !== undefined });
  }
  answer.end(end.event.body);
}

/** Cancels a call in which nothing comes for too long. */
class SilenceWatch {
  readonly #call: ProfileCall;
  #timer: NodeJS.Timeout;
  #timeoutMs: number;
  #isLate = false;

  constructor(call: ProfileCall, timeoutMs: number) {
    this.#call = call;
    this.#timeoutMs = timeoutMs;
    this.#timer = this.#begin();
  }

  /** Something came; the next has so many milliseconds. */
  note(timeoutMs: number): void {
    if (timeoutMs === this.#timeoutMs) {
      this.#timer.refresh();
      return;
    }
    this.#timeoutMs = timeoutMs;
    clearTimeout(this.#timer);
    this.#timer = this.#begin();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  throwIfLate(): void {
    if (this.#isLate) throw new CoreError("backend-error", "The runtime fell silent; its answer was cancelled.");
  }

  #begin(): NodeJS.Timeout {
    return setTimeout(() => {
      this.#isLate = true;
      this.#call.cancel();
    }, this.#timeoutMs);
  }
}
