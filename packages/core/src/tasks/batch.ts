import type { Caller, Principal } from "../auth/principal.ts";
import type { Clock } from "../ports/clock.ts";
import type { BatchLine, TaskRecord, TaskStore } from "../ports/task-store.ts";
import { CoreError, type Problem, toCoreError } from "../problems/core-error.ts";
import { problems } from "../problems/table.ts";
import type { ResponseRequest } from "../request/request.ts";
import type { Response } from "../responses/response.ts";
import type { Responses } from "../responses/responses.ts";
import type { TaskContext, TaskExecutor } from "./executor.ts";

/** One line of a batch as it came; what could not be read says why and fails by itself. */
export type BatchInput = { readonly customId?: string } & (
  | { readonly request: ResponseRequest }
  | { readonly problem: Problem }
);

/** One line of a batch as it ended. */
export type BatchOutput = { readonly index: number; readonly customId?: string } & (
  | { readonly response: Response }
  | { readonly problem: Problem }
);

/** Request of a batch, as a door makes it. */
export interface BatchRequest {
  readonly lines: readonly BatchInput[];
  /** Of every line that names none of its own. */
  readonly priority: number;
}

/** What a batch keeps: its rights are those of who made it, also after a restart. */
interface KeptBatch extends BatchRequest {
  readonly rights: Pick<Principal, "models" | "topPriority"> & Pick<Caller, "quota">;
}

export interface BatchOptions {
  readonly responses: Responses;
  readonly store: TaskStore;
  readonly clock: Clock;
  /** JSON text of an output line, without a line break. */
  readonly toLine: (output: BatchOutput) => string;
  /** Lines of one batch that run at once. @default 4 */
  readonly parallel?: number;
}

/** Milliseconds before a line that found the service full is tried again, where the problem says none. */
const retryMs = 1_000;
/** Tries of a line whose runtime is away. */
const mostTries = 60;
/** Lines read at once when they are counted. */
const linesPerRead = 100;

/**
 * Runs the lines of a batch as responses (LMSP §7), some at a time, behind whoever waits for an answer. Each finished line
 * is kept, so that none runs twice after a crash unless it was under way.
 */
export function createBatchExecutor(options: BatchOptions): TaskExecutor {
  return {
    kind: "batch",
    concurrency: 2,
    accept(request, { principal, quota }): KeptBatch {
      const { models, topPriority } = principal;
      const rights = {
        ...(models === undefined ? {} : { models }),
        ...(topPriority === undefined ? {} : { topPriority }),
        ...(quota === undefined ? {} : { quota }),
      };
      return { ...(request as BatchRequest), rights };
    },
    run: (record, context) => new BatchRun(options, record, context).run(),
  };
}

class BatchRun {
  readonly #options: BatchOptions;
  readonly #id: string;
  readonly #batch: KeptBatch;
  readonly #caller: Caller;
  readonly #context: TaskContext;
  /** Lines to run, in order. */
  #pending: number[] = [];
  #done = 0;

  constructor(options: BatchOptions, { id, owner, fairnessKey, request }: TaskRecord, context: TaskContext) {
    this.#options = options;
    this.#id = id;
    // As `accept` returned it.
    this.#batch = request as KeptBatch;
    const { quota, ...rights } = this.#batch.rights;
    this.#caller = {
      principal: { id: owner, scopes: new Set(["read", "infer"]), ...rights },
      fairnessKey,
      ...(quota === undefined ? {} : { quota }),
    };
    this.#context = context;
  }

  async run(): Promise<unknown> {
    const finished = await this.#options.store.finishedLines(this.#id);
    this.#pending = this.#batch.lines.map((_line, index) => index).filter((index) => !finished.has(index));
    this.#done = finished.size;
    this.#tell();
    const workers = Array.from({ length: this.#options.parallel ?? 4 }, () => this.#work());
    await Promise.all(workers);
    return { lines: this.#batch.lines.length, failed: await this.#countFailed() };
  }

  async #work(): Promise<void> {
    const { signal } = this.#context;
    for (let index = this.#pending.shift(); index !== undefined; index = this.#pending.shift()) {
      signal.throwIfAborted();
      const input = this.#batch.lines[index];
      if (input === undefined) continue;
      const end = "problem" in input ? { problem: input.problem } : await this.#respond(input.request);
      const { customId } = input;
      const output = { index, ...(customId === undefined ? {} : { customId }), ...end };
      await this.#keep({ index, text: this.#options.toLine(output) });
      this.#done += 1;
      this.#tell();
    }
  }

  /** The line's answer, or why there is none. @throws the signal's reason */
  async #respond(line: ResponseRequest): Promise<{ readonly response: Response } | { readonly problem: Problem }> {
    const { signal } = this.#context;
    const request: ResponseRequest = {
      ...line,
      priority: line.priority === 0 ? this.#batch.priority : line.priority,
      store: false,
      background: false,
    };
    for (let tries = 1; ; tries += 1) {
      try {
        const response = await this.#answer(request);
        signal.throwIfAborted();
        return response.problem === undefined ? { response } : { problem: response.problem };
      } catch (caught) {
        signal.throwIfAborted();
        const error = toCoreError(caught);
        // Nothing has run yet: a full service is waited for, a runtime that is away for a while.
        const isFull = error.code === "overloaded" || error.code === "rate-limited";
        if (problems[error.code].retry === "no" || (!isFull && tries >= mostTries)) return { problem: error.problem };
        await this.#pause(error.details.retryAfterMs ?? retryMs);
      }
    }
  }

  /** A full disk may have room later; what was answered is not asked for again. */
  async #keep(line: BatchLine): Promise<void> {
    for (;;) {
      try {
        await this.#options.store.putLine(this.#id, line);
        return;
      } catch (error) {
        if (error instanceof CoreError && error.code === "not-found") throw error;
        await this.#pause(retryMs);
      }
    }
  }

  async #answer(request: ResponseRequest): Promise<Response> {
    const { responses } = this.#options;
    const { signal } = this.#context;
    const owned = await responses.create(request, this.#caller, "lmsp", "whole");
    const stop = (): void => void responses.cancel(owned.id, this.#caller.principal).catch(() => {});
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    const response = await owned.done;
    signal.removeEventListener("abort", stop);
    return response;
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#context;
    let stop = (): void => {};
    await new Promise<void>((resolve) => {
      stop = this.#options.clock.after(ms, resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    stop();
    signal.throwIfAborted();
  }

  #tell(): void {
    this.#context.progress({ done: this.#done, total: this.#batch.lines.length, unit: "items" });
  }

  async #countFailed(): Promise<number> {
    let failed = 0;
    for (let from = 0; from < this.#batch.lines.length; from += linesPerRead) {
      const lines = await this.#options.store.lines(this.#id, from, linesPerRead);
      for (const { text } of lines) if ("problem" in (JSON.parse(text) as object)) failed += 1;
    }
    return failed;
  }
}

/** A line that could not be read. */
export function failedLine(error: unknown, customId: string | undefined): BatchInput {
  const { problem } = error instanceof CoreError ? error : toCoreError(error);
  return { problem, ...(customId === undefined ? {} : { customId }) };
}
