import type { CoreError } from "../problems/core-error.ts";
import type { DoorKind, Response } from "../responses/response.ts";
import type { TaskEvent } from "./task-store.ts";

export interface EmbeddingEnd {
  readonly model: string;
  readonly door: DoorKind;
  readonly inputTokens: number;
  readonly totalMs: number;
  readonly error?: CoreError;
}

/**
 * Told of what happens, for metrics and logs. Must be quick and must not throw. A response that still runs is for a look,
 * not to keep: it goes on changing, and its `output` is empty.
 */
export interface Observer {
  responseCreated?(response: Response): void;
  responseStarted?(response: Response): void;
  /** First output of a response, with its ttft in `timings.firstTokenMs`. Not told of answers that come in one piece. */
  responseFirstOutput?(response: Response): void;
  /** `error` has the cause that clients never see. */
  responseEnded?(response: Response, error: CoreError | undefined): void;
  embeddingEnded?(end: EmbeddingEnd): void;
  /** A task that is no response; its end is kept. */
  taskEnded?(task: TaskEvent["task"]): void;
  /** Something that ran by itself failed; no client waits for it. */
  fault?(error: unknown): void;
}
