/**
 * The one way in which HTTP backends talk to their servers: undici's `Pool.dispatch` with an own handler, half the
 * CPU of `fetch`. Chunks reach the reader in the read that brought them, and an abort closes the connection at once.
 */
import { type Dispatcher, Pool } from "undici";
import type { UpstreamAnswer, UpstreamCall, UpstreamReader } from "./upstream-call.ts";
import { upstreamError } from "./upstream-errors.ts";
import { AnswerHandler, answerTooLong, BodyCollector } from "./upstream-handler.ts";

export type { UpstreamAnswer, UpstreamCall, UpstreamReader } from "./upstream-call.ts";

export interface UpstreamOptions {
  /** `http://host:port`, with or without a path that is put before every call's. */
  readonly baseUrl: string;
  /** Sent with every request; never logged. */
  readonly headers?: Readonly<Record<string, string>>;
  /** @default 3000 */
  readonly connectTimeoutMs?: number;
  /** Milliseconds until the head of an answer; a prompt can take long. @default 600000 */
  readonly headTimeoutMs?: number;
  /** Milliseconds of silence within a body. @default 300000 */
  readonly silenceTimeoutMs?: number;
  /** Connections at once; more requests wait. @default without limit: admission limits requests */
  readonly connections?: number;
}

export const defaultHeadTimeoutMs = 600_000;
export const defaultSilenceTimeoutMs = 300_000;

/** Bytes of an answer about the server and its models. */
export const maxProbeBytes = 8 * 1024 * 1024;

/** Milliseconds that the body of an error may take. */
const errorTimeoutMs = 5_000;
const defaultAnswerBytes = 128 * 1024 * 1024;
/** A connection that was closed while it was idle shows that within this many milliseconds of the next request. */
const staleWithinMs = 1000;
/** Further times that a request is sent which met such connections; a server often closes several at once. */
const mostRepeats = 3;

export class Upstream {
  readonly #pool: Pool;
  readonly #origin: string;
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #headersOfJson: Readonly<Record<string, string>>;
  readonly #errorTimeoutMs: number;

  /** Opens no connection yet. @throws TypeError when `baseUrl` is no http or https URL */
  constructor(options: UpstreamOptions) {
    const url = new URL(options.baseUrl);
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      throw new TypeError("baseUrl must begin with http:// or https://");
    }
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#headers = { accept: "*/*", "accept-encoding": "identity", ...options.headers };
    this.#headersOfJson = { ...this.#headers, "content-type": "application/json" };
    const silenceTimeoutMs = options.silenceTimeoutMs ?? defaultSilenceTimeoutMs;
    this.#errorTimeoutMs = Math.min(errorTimeoutMs, silenceTimeoutMs);
    this.#pool = new Pool(url.origin, {
      connections: options.connections ?? null,
      connect: { timeout: options.connectTimeoutMs ?? 3000 },
      headersTimeout: options.headTimeoutMs ?? defaultHeadTimeoutMs,
      bodyTimeout: silenceTimeoutMs,
    });
  }

  /**
   * Reads a whole answer, whatever its status; of an error as much as `stream` reads.
   * @param maxAnswerBytes longer ones are refused. Default 134217728 (128 MiB)
   * @throws CoreError backend-unavailable, backend-error; the signal's reason
   */
  async json(call: UpstreamCall, maxAnswerBytes: number = defaultAnswerBytes): Promise<UpstreamAnswer> {
    const collector = new BodyCollector(maxAnswerBytes);
    let refused: UpstreamAnswer | undefined;
    try {
      await this.stream(call, {
        onHead: (status, headers) => {
          collector.head(status, headers);
          return status < 300;
        },
        onData: (chunk) => {
          if (!collector.add(chunk)) throw answerTooLong(maxAnswerBytes);
        },
        onRefused: (answer) => {
          refused = answer;
          return upstreamError(answer);
        },
      });
    } catch (error) {
      if (refused === undefined) throw error;
      return refused;
    }
    return collector.answer();
  }

  /**
   * Gives the reader an answer as it comes. Resolves at its clean end. A request that met a connection which the server
   * had just closed is sent again: no byte of an answer has come, and inference changes nothing.
   * @throws CoreError backend-unavailable when the server can't be reached, backend-error when the answer is cut,
   * stays silent too long or is no HTTP; the signal's reason; what the reader throws
   */
  stream(call: UpstreamCall, reader: UpstreamReader): Promise<void> {
    const { signal } = call;
    return new Promise<void>((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const request = this.#requestOf(call);
      const sentAt = performance.now();
      const send = (repeats: number): AnswerHandler => {
        const sent = new AnswerHandler(reader, this.#errorTimeoutMs, (...failure) => {
          if (sent.wasStale && repeats > 0 && !signal.aborted && performance.now() - sentAt < staleWithinMs) {
            handler = send(repeats - 1);
            return;
          }
          signal.removeEventListener("abort", onAbort);
          if (failure.length === 0) resolve();
          else reject(failure[0]);
        });
        this.#pool.dispatch(request, sent);
        return sent;
      };
      const onAbort = () => handler.abort(signal.reason);
      signal.addEventListener("abort", onAbort);
      let handler = send(mostRepeats);
    });
  }

  /** Closes every connection; running calls fail with backend-error. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  #requestOf(call: UpstreamCall): Dispatcher.DispatchOptions {
    const { method, path, headers, headTimeoutMs } = call;
    const body = call.json ?? (call.body === undefined ? undefined : JSON.stringify(call.body));
    const own = body === undefined ? this.#headers : this.#headersOfJson;
    return {
      origin: this.#origin,
      path: `${this.#prefix}${path}`,
      method,
      headers: headers === undefined ? own : { ...own, ...headers },
      body: body ?? null,
      headersTimeout: headTimeoutMs ?? null,
    };
  }
}
