import { CoreError } from "@plenum/core";
import { type Dispatcher, errors } from "undici";
import type { UpstreamAnswer, UpstreamReader } from "./upstream-call.ts";
import { upstreamFailure } from "./upstream-failure.ts";

type Headers = Readonly<Record<string, string>>;

/** Bytes of an error's body that are read. */
const maxErrorBytes = 256 * 1024;

/** Drops a byte-order mark; it keeps nothing between two texts. */
const decoder = new TextDecoder();

/** Collects a body up to a limit in bytes. */
export class BodyCollector {
  readonly #limitBytes: number;
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #status = 0;
  #headers: Headers = {};

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  head(status: number, headers: Headers): void {
    this.#status = status;
    this.#headers = headers;
  }

  /** @returns false when the chunk no longer fits; it is not kept then */
  add(chunk: Uint8Array): boolean {
    if (this.#bytes + chunk.byteLength > this.#limitBytes) return false;
    this.#bytes += chunk.byteLength;
    this.#chunks.push(chunk);
    return true;
  }

  /** All that has come. */
  text(): string {
    return decoder.decode(Buffer.concat(this.#chunks, this.#bytes));
  }

  answer(): UpstreamAnswer {
    // What is compressed tells nothing; only errors come here with it.
    const text = isCompressed(this.#headers) ? "" : this.text();
    return { status: this.#status, headers: this.#headers, body: parsed(text), text };
  }
}

/** One call's answer. `settle` is called once: without an argument at the clean end, with the error otherwise. */
export class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #reader: UpstreamReader;
  readonly #errorTimeoutMs: number;
  readonly #settle: (...failure: [] | [unknown]) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #errorBody: BodyCollector | undefined;
  #errorTimer: NodeJS.Timeout | undefined;
  #lingerTimer: NodeJS.Timeout | undefined;
  #lingerMs = Number.POSITIVE_INFINITY;
  #hasHead = false;
  #isSettled = false;
  /** The server closed a connection on which it had answered before, without a word to this request. */
  wasStale = false;

  /** @param errorTimeoutMs that the body of an error may take; then what has come of it is told */
  constructor(reader: UpstreamReader, errorTimeoutMs: number, settle: (...failure: [] | [unknown]) => void) {
    this.#reader = reader;
    this.#errorTimeoutMs = errorTimeoutMs;
    this.#settle = settle;
  }

  /** Ends the call with this error and closes its connection, or keeps it from being sent. */
  abort(reason: unknown): void {
    this.#end(reason);
    this.#close();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isSettled) this.#close();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, raw: NodeHeaders): void {
    if (this.#isSettled || status < 200) return;
    this.#hasHead = true;
    const headers = flat(raw);
    this.#guard(() => {
      if (status < 300) requireReadable(headers);
      if (this.#reader.onHead(status, headers) !== false) return;
      const body = new BodyCollector(maxErrorBytes);
      body.head(status, headers);
      this.#errorBody = body;
      this.#errorTimer = setTimeout(() => this.abort(this.#refused(body)), this.#errorTimeoutMs);
    });
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#isSettled) return;
    this.#guard(() => {
      if (this.#errorBody === undefined) {
        this.#reader.onData(chunk);
        if (this.#reader.lingerMs !== undefined) this.#linger(this.#reader.lingerMs);
      } else if (!this.#errorBody.add(chunk)) throw this.#refused(this.#errorBody);
    });
  }

  onResponseEnd(): void {
    if (this.#errorBody === undefined) this.#end();
    else this.#end(this.#refused(this.#errorBody));
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.wasStale = !this.#hasHead && error instanceof errors.SocketError && (error.socket?.bytesRead ?? 0) > 0;
    if (this.#reader.lingerMs !== undefined) this.#end();
    else if (this.#errorBody === undefined) this.#end(upstreamFailure(error, this.#hasHead));
    else this.#end(this.#refused(this.#errorBody));
  }

  #refused(body: BodyCollector): Error {
    return this.#reader.onRefused(body.answer());
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.abort(error);
    }
  }

  /** Waits for the end of a whole answer's body no longer than this. */
  #linger(ms: number): void {
    if (ms >= this.#lingerMs) return;
    this.#lingerMs = ms;
    clearTimeout(this.#lingerTimer);
    this.#lingerTimer = setTimeout(() => {
      this.#end();
      this.#close();
    }, ms);
  }

  #end(...failure: [] | [unknown]): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#errorTimer);
    clearTimeout(this.#lingerTimer);
    this.#settle(...failure);
  }

  #close(): void {
    this.#controller?.abort(new Error("the call has ended"));
  }
}

type NodeHeaders = Readonly<Record<string, string | string[] | undefined>>;

function flat(raw: NodeHeaders): Headers {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(raw)) {
    if (value !== undefined) headers[name] = typeof value === "string" ? value : value.join(", ");
  }
  return headers;
}

function isCompressed(headers: Headers): boolean {
  return !/^(identity)?$/i.test(headers["content-encoding"]?.trim() ?? "");
}

/** Refuses an answer that nobody asked for, by its head. */
function requireReadable(headers: Headers): void {
  if (isCompressed(headers)) {
    throw new CoreError("backend-error", "The runtime compressed its answer, which nobody asked for; switch that off.");
  }
  if (/^text\/html\b/i.test(headers["content-type"] ?? "")) throw webPageError();
}

export function answerTooLong(limitBytes: number): CoreError {
  return new CoreError("backend-error", `The runtime's answer is longer than ${limitBytes} bytes.`, {
    limit: limitBytes,
  });
}

/** The answer is a page for browsers, so this is not a runtime's API. */
export function webPageError(): CoreError {
  return new CoreError("backend-error", "The runtime answered with a web page; correct its address.");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Errors come as HTML and plain text too; the caller reads `text` then.
    return undefined;
  }
}
