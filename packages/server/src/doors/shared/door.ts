import type { Caller, Core, CoreError, DoorKind, Scope } from "@plenum/core";
import type { ZodType } from "zod";

/** A request as every door sees it, with or without a socket behind it. */
export interface DoorRequest {
  readonly method: string;
  /** Path as it was sent, percent-encoded, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** Empty when none was sent. */
  readonly body: Uint8Array;
  /** Peer's address, for fairness. */
  readonly peer: string;
  /** Id of this request in answers and logs. */
  readonly requestId: string;
  /** Origin as the client reaches it, such as `http://127.0.0.1:7411`. */
  readonly origin: string;
}

export type ResponseHeaders = Readonly<Record<string, string>>;

/** Where an answer goes. */
export interface Responder {
  /** The client went away before `end`. */
  readonly isClosed: boolean;
  /** Calls once when the client goes away before `end`; returns a function that ends the wait. */
  onClosed(listener: () => void): () => void;
  /** True once `start` was called. */
  readonly hasStarted: boolean;
  /** Status and headers; they leave at once. */
  start(status: number, headers: ResponseHeaders): void;
  /** @returns false when the client reads more slowly: wait for `onDrain` before writing more. */
  write(text: string): boolean;
  /** Called each time that the client has caught up; replaces an earlier listener. */
  onDrain(listener: () => void): void;
  end(text?: string): void;
  /** Breaks the connection off: its client may no longer be answered. */
  cut(): void;
}

/** One call of one operation, authenticated. */
export interface Call {
  readonly core: Core;
  readonly request: DoorRequest;
  readonly responder: Responder;
  readonly caller: Caller;
  /** What stands in the place of the path's `*`, decoded; empty without one. */
  readonly rest: string;
  /**
   * The body, checked.
   * @throws CoreError invalid-json, invalid-request with `param`.
   */
  json<T>(schema: ZodType<T>): T;
}

/** One endpoint. */
export interface Operation {
  /** Name in the service document, such as `chat.completions.create`. */
  readonly name: string;
  readonly method: "GET" | "HEAD" | "POST" | "PATCH" | "DELETE";
  /** Exact path, or one with one `*` for any text, slashes included, such as `/v1/models/` and a `*`. */
  readonly path: string;
  /** Media types that its body may have beside JSON. Absent: none. */
  readonly mediaTypes?: readonly string[];
  /** Null: no token needed. */
  readonly scope: Scope | null;
  handle(call: Call): Promise<void> | void;
}

export interface RenderedProblem {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

/** One API over the core. It only converts. */
export interface Door {
  readonly kind: DoorKind;
  readonly operations: readonly Operation[];
  /** True: a body whose media type says something other than JSON is refused. */
  readonly requiresJson: boolean;
  /** True for paths whose errors have this door's format, also where no operation is. */
  owns(path: string): boolean;
  /** An error before the answer has started. */
  renderProblem(error: CoreError, request: DoorRequest): RenderedProblem;
}
