import type { BackendModel } from "../catalog/model.ts";
import type { BackendEvent } from "../events/backend-events.ts";
import type { EmbeddingRequest, ResponseRequest } from "../request/request.ts";
import type { TaskProgress } from "./task-store.ts";

/** Takes all events of one read at once. Synchronous: no promise per token. Calls after the end are ignored. */
export type BackendSink = (events: readonly BackendEvent[]) => void;

/** A request whose model is this backend's own name and whose `previousResponseId` is already unrolled into the input. */
export interface BackendRequest extends ResponseRequest {
  /** Absent: `events`. */
  readonly delivery?: Delivery;
}

/**
 * `whole`: whoever made the request reads the answer only at its end, so a runtime may be asked for it in one piece,
 * which costs much less. Its events then all come at the end.
 */
export type Delivery = "events" | "whole";

export interface BackendEmbedding {
  readonly vectors: readonly Float32Array[];
  readonly inputTokens: number;
  readonly loadMs: number;
}

/** `degraded`: it answers, but not all of it can be used now. */
export interface RuntimeHealth {
  readonly state: "healthy" | "degraded" | "unavailable";
  /** One sentence that says what to do. Absent: healthy. */
  readonly reason?: string;
}

/** A runtime that runs models: embedded llama.cpp, a server, another Plenum. Every implementation runs `testBackend`. */
export interface Backend {
  /** Unique in the service; `<id>/<model name>` always names a model. */
  readonly id: string;
  /** Kind of runtime: `llama.cpp`, `ollama`, `vllm`, … */
  readonly kind: string;
  /** Resolves when `models()` is complete for the first time; never rejects. Absent: it is from the start. */
  readonly ready?: Promise<void>;
  /** Models as they are now; cheap. */
  models(): readonly BackendModel[];
  /** How the runtime is. Absent: its models tell. */
  health?(): RuntimeHealth;
  /** Calls the listener after each change of `models()` or `health()`; the returned function ends that. */
  onChange(listener: () => void): () => void;
  /**
   * Runs one request to its end. Loads the model first when needed. Pushes `accepted` once, then output, then for each
   * candidate one `finish`, and `usage` before the promise resolves.
   * @param signal aborts the work in every phase (load wait, prompt, generation); the promise then rejects with
   * the signal's reason, and the runtime's slot is free again when it settles.
   * @throws CoreError for every other failure.
   */
  respond(request: BackendRequest, sink: BackendSink, signal: AbortSignal): Promise<void>;
  /** Vectors of length 1. Rules of `respond` hold for load, signal and errors. */
  embed(request: EmbeddingRequest, signal: AbortSignal): Promise<BackendEmbedding>;
  /** Loads a model; resolves when it can answer. @throws CoreError model-not-found, insufficient-memory, backend-error. */
  load(model: string, options: { readonly keepAliveMs?: number }, signal: AbortSignal): Promise<void>;
  /** Unloads a model when its running responses have ended. Nothing happens when it is not loaded. */
  unload(model: string): Promise<void>;
  /**
   * Removes a model for good: the files that the service placed itself, or the runtime's own. A file that was only named
   * to the service is no longer served and stays where it is. Absent: this runtime can't.
   * @throws CoreError model-not-found; conflict while it is in use, or when its files are somebody else's.
   */
  delete?(model: string): Promise<void>;
  /**
   * Fetches a model under the runtime's own name for it; resolves when it is listed. Absent: this runtime can't.
   * @throws CoreError for every failure; the signal's reason.
   */
  pull?(model: string, onProgress: (progress: TaskProgress) => void, signal: AbortSignal): Promise<void>;
  /** Ends everything it started; running requests fail. */
  close(): Promise<void>;
}
