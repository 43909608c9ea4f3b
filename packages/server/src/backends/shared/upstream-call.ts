export interface UpstreamCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** With its leading slash, put behind the base URL's path. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** The body when it is JSON already, in place of `body`. */
  readonly json?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Milliseconds until the head of the answer. @default the upstream's */
  readonly headTimeoutMs?: number | undefined;
}

/** A whole answer. */
export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed JSON; undefined when the text is none. */
  readonly body: unknown;
  readonly text: string;
}

export interface UpstreamReader {
  /**
   * Status and headers (names in lower case). `false`: the body is an error; it is read whole, up to 256 KiB, goes to
   * `onRefused`, and `onData` is never called. Anything else: the body goes to `onData`.
   */
  onHead(status: number, headers: Readonly<Record<string, string>>): unknown;
  /** One read's bytes. What it throws ends the connection and is what `stream` rejects with. */
  onData(chunk: Uint8Array): void;
  /**
   * Milliseconds that the server may still take to end its body, asked after each `onData`. Undefined: the answer is not
   * whole yet. One that is whole is not lost when only the end of its body is missing or broken.
   */
  readonly lingerMs?: number | undefined;
  /** Makes an error of a body that `onHead` refused. */
  onRefused(answer: UpstreamAnswer): Error;
}
