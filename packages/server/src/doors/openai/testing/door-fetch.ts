import type { Core } from "@plenum/core";
import { Closing } from "../../shared/closing.ts";
import { dispatch } from "../../shared/dispatch.ts";
import type { Door, DoorRequest, Responder, ResponseHeaders } from "../../shared/door.ts";

/** A `fetch` that calls the door in this process, streams and aborts included: real SDKs run on it without a port. */
export function doorFetch(door: Door, core: Core): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const responder = new FetchResponder();
    request.signal.addEventListener("abort", () => responder.close(), { once: true });
    const answer = dispatch(door, { core }, await toDoorRequest(request), responder);
    const aborted = new Promise<never>((_resolve, reject) => {
      request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true });
    });
    return await Promise.race([responder.answered, aborted, answer.then(() => responder.answered)]);
  };
}

async function toDoorRequest(request: Request): Promise<DoorRequest> {
  const url = new URL(request.url);
  return {
    method: request.method,
    path: url.pathname,
    query: url.searchParams,
    headers: Object.fromEntries(request.headers),
    body: new Uint8Array(await request.arrayBuffer()),
    peer: "127.0.0.1",
    requestId: "req_test",
    origin: url.origin,
  };
}

class FetchResponder implements Responder {
  readonly #closing = new Closing();
  readonly #encoder = new TextEncoder();
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  #resolve: (response: Response) => void = () => {};
  readonly answered: Promise<Response>;
  hasStarted = false;

  constructor() {
    this.answered = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get isClosed(): boolean {
    return this.#closing.isClosed;
  }

  onClosed(listener: () => void): () => void {
    return this.#closing.onClosed(listener);
  }

  close(): void {
    this.#closing.close();
  }

  cut(): void {
    this.close();
    this.#stream?.error(new TypeError("terminated"));
  }

  start(status: number, headers: ResponseHeaders): void {
    this.hasStarted = true;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#stream = controller;
      },
      cancel: () => this.close(),
    });
    this.#resolve(new Response(body, { status, headers }));
  }

  write(text: string): boolean {
    if (!this.isClosed) this.#stream?.enqueue(this.#encoder.encode(text));
    return true;
  }

  onDrain(): void {}

  end(text?: string): void {
    if (this.isClosed) return;
    if (text !== undefined) this.write(text);
    this.#stream?.close();
  }
}
