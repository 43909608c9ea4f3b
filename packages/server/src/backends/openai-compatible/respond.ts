import { setTimeout as sleep } from "node:timers/promises";
import { type BackendModel, type BackendRequest, type BackendSink, CoreError } from "@plenum/core";
import { shorten } from "../shared/shorten.ts";
import type { Upstream, UpstreamReader } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import { BodyCollector } from "../shared/upstream-handler.ts";
import { dialectOf } from "./dialects.ts";
import type { OpenaiCompatibleSettings } from "./options.ts";
import { type UpstreamBody, upstreamBody, withoutMaxTokens } from "./request.ts";
import { AnswerReader } from "./stream.ts";

export interface RespondOptions {
  readonly upstream: Upstream;
  readonly settings: OpenaiCompatibleSettings;
  readonly request: BackendRequest;
  readonly model: BackendModel;
  readonly sink: BackendSink;
  readonly signal: AbortSignal;
}

/** Milliseconds between two tries while the server loads its model. */
const loadingIntervalMs = 500;
/** Milliseconds that a server may take to end its body behind the sentinel before its connection is closed. */
const lingerMs = 250;
/** Bytes of a whole answer, from servers that do not stream. */
const mostWholeBytes = 64 * 1024 * 1024;

/** Runs one request to its end. @throws CoreError; the signal's reason */
export async function respondAt(options: RespondOptions): Promise<void> {
  const { settings, model, signal } = options;
  const output = new OutputWatch(options.sink);
  const dialect = dialectOf(settings.kind);
  let { request } = options;
  let body = upstreamBody(request, model, settings.kind, dialect);
  const startedAt = performance.now();
  for (;;) {
    try {
      await attempt({ ...options, request, sink: output.sink }, body);
      return;
    } catch (error) {
      if (!(error instanceof CoreError) || signal.aborted || output.hasBegun) throw error;
      if (error.code === "model-loading" && performance.now() - startedAt < settings.loadTimeoutMs) {
        options.sink([{ type: "progress", progress: { kind: "loading" } }]);
        await pause(signal);
      } else if (isBoundRefusal(error, body)) {
        body = withoutMaxTokens(body);
      } else if (error.code === "context-length-exceeded" && request.truncation === "oldest") {
        request = shorten(request, error);
        body = upstreamBody(request, model, settings.kind, dialect);
      } else throw error;
    }
  }
}

/** Knows whether output went out, after which nothing can be tried again, and passes `accepted` on once. */
class OutputWatch {
  hasBegun = false;
  #isAccepted = false;
  readonly #sink: BackendSink;

  constructor(sink: BackendSink) {
    this.#sink = sink;
  }

  readonly sink: BackendSink = (events) => {
    const [first] = events;
    if (first?.type !== "accepted") this.hasBegun = true;
    else if (this.#isAccepted) return;
    else this.#isAccepted = true;
    this.#sink(events);
  };
}

/** Prompt and bound together are over the context: without the bound the answer ends where the context does. */
function isBoundRefusal(error: CoreError, { body }: UpstreamBody): boolean {
  const hasBound = "max_tokens" in body || "max_completion_tokens" in body;
  return hasBound && error.code === "backend-refused" && /max_(completion_)?tokens/.test(error.detail);
}

async function pause(signal: AbortSignal): Promise<void> {
  try {
    await sleep(loadingIntervalMs, undefined, { signal });
  } catch {
    // The wait is cut only by the signal; its own reason is what the caller gave.
    signal.throwIfAborted();
  }
}

async function attempt(
  { upstream, request, sink, signal }: RespondOptions,
  { path, body }: UpstreamBody,
): Promise<void> {
  const answer = new AnswerReader(request, sink);
  const call = new AnswerCall(answer, request.model);
  const onAbort = () => call.abort.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    await upstream.stream({ method: "POST", path, body, signal: call.abort.signal }, call);
    call.end();
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // Only the end of the body is missing, or comes late: the answer is whole.
    if (!answer.isWhole || call.hasFailed) throw error;
    answer.end();
  } finally {
    signal.removeEventListener("abort", onAbort);
    call.close();
  }
}

/** Feeds one answer's body to its reader, as event stream or as one JSON text. */
class AnswerCall implements UpstreamReader {
  readonly abort = new AbortController();
  /** What came was no answer, or an error. */
  hasFailed = false;
  readonly #answer: AnswerReader;
  readonly #model: string;
  #whole: BodyCollector | undefined;
  #linger: NodeJS.Timeout | undefined;

  constructor(answer: AnswerReader, model: string) {
    this.#answer = answer;
    this.#model = model;
  }

  onHead(status: number, headers: Readonly<Record<string, string>>): boolean {
    if (status < 200 || status >= 300) return false;
    if (/^application\/json\b/i.test(headers["content-type"] ?? "")) this.#whole = new BodyCollector(mostWholeBytes);
    this.#answer.accept();
    return true;
  }

  onData(chunk: Uint8Array): void {
    if (this.#whole !== undefined) {
      if (this.#whole.add(chunk)) return;
      this.hasFailed = true;
      throw new CoreError("backend-error", `The runtime's answer is longer than ${mostWholeBytes} bytes.`);
    }
    this.#guard(() => this.#answer.push(chunk));
    if (this.#answer.isDone) this.#linger ??= setTimeout(() => this.abort.abort(), lingerMs);
  }

  onRefused(answer: Parameters<typeof upstreamError>[0]): CoreError {
    this.hasFailed = true;
    return upstreamError(answer, { model: this.#model });
  }

  /** The clean end of the body. */
  end(): void {
    this.#guard(() => {
      if (this.#whole !== undefined) this.#answer.takeWhole(this.#whole.answer().text);
      this.#answer.end();
    });
  }

  close(): void {
    clearTimeout(this.#linger);
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.hasFailed = true;
      throw error;
    }
  }
}
