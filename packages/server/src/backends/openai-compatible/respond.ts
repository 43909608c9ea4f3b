import { setTimeout as sleep } from "node:timers/promises";
import { type BackendModel, type BackendRequest, type BackendSink, CoreError } from "@plenum/core";
import { forcedCall } from "../shared/forced-call.ts";
import { OutputWatch } from "../shared/output-watch.ts";
import { shorten } from "../shared/shorten.ts";
import { traceHeaders } from "../shared/trace-headers.ts";
import type { Upstream, UpstreamReader } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import { answerTooLong, BodyCollector, webPageError } from "../shared/upstream-handler.ts";
import { type Dialect, dialectOf } from "./dialects.ts";
import type { OpenaiCompatibleSettings } from "./options.ts";
import { isWhole, type UpstreamBody, upstreamBody, withoutMaxTokens } from "./request.ts";
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
/** The same behind the last `finish_reason`, while usage and the sentinel may follow. */
const finishedLingerMs = 2_000;
/** Bytes of a whole answer. */
const mostWholeBytes = 64 * 1024 * 1024;

/** Runs one request to its end. @throws CoreError; the signal's reason */
export async function respondAt(options: RespondOptions): Promise<void> {
  const { settings, model, signal } = options;
  const output = new OutputWatch(options.sink);
  const dialect = dialectOf(settings.kind);
  const forced = canForce(model, dialect) ? undefined : forcedCall(options.request);
  let request = forced?.request ?? options.request;
  let body = upstreamBody(request, model, settings.kind, dialect);
  const startedAt = performance.now();
  for (;;) {
    try {
      const sink = forced?.sinkBefore(output.sink) ?? output.sink;
      await attempt({ ...options, request, sink }, body);
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

/** A server that writes tools into the prompt itself leaves it to the model whether it calls one. */
function canForce({ emulated }: BackendModel, { forcesCalls }: Dialect): boolean {
  return forcesCalls && !emulated.includes("tools");
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
  { upstream, settings, request, sink, signal }: RespondOptions,
  { path, body }: UpstreamBody,
): Promise<void> {
  const answer = new AnswerReader(request, sink);
  const call = new AnswerCall(answer, request.model);
  const inOnePiece = isWhole(request, dialectOf(settings.kind));
  // Its head comes with the answer, so there is no other sign that it runs.
  if (inOnePiece) answer.accept({ isWhole: true });
  const headTimeoutMs = inOnePiece ? settings.wholeTimeoutMs : undefined;
  await upstream.stream({ method: "POST", path, body, ...traceHeaders(request), signal, headTimeoutMs }, call);
  call.end();
}

/** Feeds one answer's body to its reader, as event stream or as one JSON text: the body tells, whatever its type says. */
class AnswerCall implements UpstreamReader {
  readonly #answer: AnswerReader;
  readonly #model: string;
  /** Undefined: nothing but blanks has come. */
  #form: "events" | "whole" | undefined;
  readonly #whole = new BodyCollector(mostWholeBytes);

  constructor(answer: AnswerReader, model: string) {
    this.#answer = answer;
    this.#model = model;
  }

  get lingerMs(): number | undefined {
    if (this.#answer.isDone) return lingerMs;
    return this.#answer.hasFinished ? finishedLingerMs : undefined;
  }

  onHead(status: number): boolean {
    if (status < 200 || status >= 300) return false;
    this.#answer.accept();
    return true;
  }

  onData(chunk: Uint8Array): void {
    this.#form ??= formOf(chunk);
    if (this.#form !== "whole") this.#answer.push(chunk);
    else if (!this.#whole.add(chunk)) throw answerTooLong(mostWholeBytes);
  }

  onRefused(answer: Parameters<typeof upstreamError>[0]): CoreError {
    return upstreamError(answer, { model: this.#model });
  }

  /** The end of the body. */
  end(): void {
    if (this.#form === "whole") this.#answer.takeWhole(this.#whole.text());
    this.#answer.end();
  }
}

/** By the first byte that is no blank and no byte-order mark; a line of an event stream begins with neither. */
function formOf(chunk: Uint8Array): "events" | "whole" | undefined {
  const first = chunk.find((byte) => byte > 0x20 && byte !== 0xef && byte !== 0xbb && byte !== 0xbf);
  if (first === 0x3c) throw webPageError();
  if (first === undefined) return undefined;
  return first === 0x7b || first === 0x5b ? "whole" : "events";
}
