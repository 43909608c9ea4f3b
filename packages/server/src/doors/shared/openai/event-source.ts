import type { CoreError, LogEntry, Problem } from "@plenum/core";

/** Members of OpenAI's error object; all four are always there. */
export interface WireError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** The door's table of problems; doors that carry OpenAI bodies spell the codes differently. */
export type ToWireError = (problem: Problem) => WireError;

/** One event of an OpenAI stream, without the framing of a transport. */
export interface WireEvent {
  /** Absent where the API's events have no name. */
  readonly name?: string;
  readonly json: string;
}

/** Makes an API's events of a log, read from its first entry on: a pure function of the log and the request. */
export interface EventSource {
  push(entry: LogEntry): readonly WireEvent[];
  /** True once nothing more may be shown, though the log goes on. Absent: false. */
  readonly hasEnded?: boolean;
  /** Events that end a stream whose log is no longer kept. */
  fail(error: CoreError): readonly WireEvent[];
}
