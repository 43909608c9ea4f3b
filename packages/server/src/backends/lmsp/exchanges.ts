import type { Fetch } from "@plenum/client";
import type { Upstream, UpstreamCall } from "../shared/upstream.ts";

/**
 * `fetch` for the client over this backend's connections, with their time limits and their words for what fails. Knows
 * what is under way, so that the end of a cancelled answer can be waited for.
 */
export class Exchanges {
  readonly #upstream: Upstream;
  readonly #baseUrl: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #running = new Set<Promise<void>>();

  /** @param headers sent with every request, beside those of the client */
  constructor(upstream: Upstream, baseUrl: string, headers: Readonly<Record<string, string>>) {
    this.#upstream = upstream;
    this.#baseUrl = baseUrl;
    this.#headers = headers;
  }

  readonly fetch: Fetch = (url, init) => {
    const abort = new AbortController();
    const stop = (): void => abort.abort(init.signal?.reason);
    if (init.signal?.aborted) stop();
    init.signal?.addEventListener("abort", stop, { once: true });
    return new Promise((resolve, reject) => {
      const answer = new Answer(resolve, (reason) => abort.abort(reason));
      const running = this.#upstream
        .stream(this.#callOf(url, init, abort.signal), answer)
        .then(
          () => answer.end(),
          (error: unknown) => {
            answer.fail(error);
            reject(error);
          },
        )
        .finally(() => {
          init.signal?.removeEventListener("abort", stop);
          this.#running.delete(running);
        });
      this.#running.add(running);
    });
  };

  /** Resolves when nothing is under way, or after this many milliseconds. */
  async idle(timeoutMs: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    let isLate = false;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        isLate = true;
        resolve();
      }, timeoutMs);
    });
    while (this.#running.size > 0 && !isLate) await Promise.race([late, ...this.#running]);
    clearTimeout(timer);
  }

  #callOf(url: string, { method, headers, body }: RequestInit, signal: AbortSignal): UpstreamCall {
    return {
      method: method === "POST" || method === "DELETE" ? method : "GET",
      path: url.slice(this.#baseUrl.length),
      headers: { ...Object.fromEntries(new Headers(headers)), ...this.#headers },
      ...(typeof body === "string" ? { json: body } : {}),
      signal,
    };
  }
}

/** Makes the client's answer of what the upstream reads. */
class Answer {
  readonly #resolve: (answer: Response) => void;
  readonly #body: ReadableStream<Uint8Array>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isOpen = true;

  constructor(resolve: (answer: Response) => void, cancel: (reason: unknown) => void) {
    this.#resolve = resolve;
    this.#body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      cancel: (reason) => {
        this.#isOpen = false;
        cancel(reason);
      },
    });
  }

  onHead(status: number, headers: Readonly<Record<string, string>>): true {
    const hasBody = status !== 204 && status !== 304;
    this.#resolve(new Response(hasBody ? this.#body : null, { status, headers }));
    return true;
  }

  onData(chunk: Uint8Array): void {
    if (this.#isOpen) this.#controller?.enqueue(chunk);
  }

  /** Never called: `onHead` refuses nothing. */
  onRefused(): Error {
    return new Error("The answer was refused.");
  }

  end(): void {
    if (this.#isOpen) this.#controller?.close();
    this.#isOpen = false;
  }

  fail(error: unknown): void {
    if (this.#isOpen) this.#controller?.error(error);
    this.#isOpen = false;
  }
}
