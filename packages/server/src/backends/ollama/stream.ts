import { type BackendEvent, type BackendSink, CoreError, type FinishReason, type TokenLogprob } from "@plenum/core";
import { parseExact, writeExact } from "../shared/exact-json.ts";
import { NdjsonReader } from "../shared/ndjson-reader.ts";
import type { UpstreamAnswer, UpstreamReader } from "../shared/upstream-call.ts";
import { listOf, member, numberOf, textOf } from "./json-fields.ts";

export interface AnswerReaderOptions {
  readonly sink: BackendSink;
  /** Number of the answer. @default 0 */
  readonly candidate?: number;
  /** False: calls after the first are left out. */
  readonly parallelToolCalls: boolean;
  /** Told when the server has taken the request. @default nothing */
  readonly onAccepted?: () => void;
  /** Error of an answer that is no 2xx. */
  readonly onRefused: (answer: UpstreamAnswer) => Error;
  /** Error of a line that is one. */
  readonly errorOf: (line: unknown) => Error;
}

/** Milliseconds that a server may take to end its body behind the last line before its connection is closed. */
const lingerMs = 250;

/** Lines of `/api/chat` and `/api/generate` to core events; each read is one batch. */
export class AnswerReader implements UpstreamReader {
  readonly #options: AnswerReaderOptions;
  readonly #candidate: number;
  readonly #lines = new NdjsonReader((line) => this.#read(line));
  #batch: BackendEvent[] = [];
  #calls = 0;
  #isDone = false;

  constructor(options: AnswerReaderOptions) {
    this.#options = options;
    this.#candidate = options.candidate ?? 0;
  }

  get lingerMs(): number | undefined {
    return this.#isDone ? lingerMs : undefined;
  }

  onHead(status: number): boolean {
    if (status < 200 || status > 299) return false;
    this.#options.sink([{ type: "accepted" }]);
    this.#options.onAccepted?.();
    return true;
  }

  onData(chunk: Uint8Array): void {
    this.#whileCollecting(() => this.#lines.push(chunk));
  }

  onRefused(answer: UpstreamAnswer): Error {
    return this.#options.onRefused(answer);
  }

  /** @throws CoreError backend-error when the last line did not come */
  end(): void {
    this.#whileCollecting(() => this.#lines.end());
    if (this.#isDone) return;
    throw new CoreError("backend-error", "Ollama's stream ended before the answer was complete.");
  }

  /** What was read before an error is pushed all the same. */
  #whileCollecting(work: () => void): void {
    try {
      work();
    } finally {
      if (this.#batch.length > 0) {
        const batch = this.#batch;
        this.#batch = [];
        this.#options.sink(batch);
      }
    }
  }

  #read(text: string): void {
    if (this.#isDone) return;
    const line = parsedLine(text);
    const error = member(line, "error");
    if (error !== undefined && error !== null) throw this.#options.errorOf(line);
    const message = member(line, "message") ?? line;
    const thinking = textOf(message, "thinking");
    if (thinking) this.#batch.push({ type: "reasoning", candidate: this.#candidate, delta: thinking });
    this.#readContent(textOf(message, "content") ?? textOf(message, "response") ?? "", line);
    const calls = listOf(message, "tool_calls");
    if (calls.length > 0) this.#readCalls(text);
    if (member(line, "done") === true) this.#finish(line);
  }

  #readContent(delta: string, line: unknown): void {
    if (delta === "") return;
    const logprobs = listOf(line, "logprobs");
    const extra = logprobs.length === 0 ? {} : { logprobs: logprobs.map(toLogprob) };
    this.#batch.push({ type: "text", candidate: this.#candidate, delta, ...extra });
  }

  /** Ollama sends each call whole. Its line is read again so that big numbers keep their digits. */
  #readCalls(text: string): void {
    const line = parseExact(text);
    for (const call of listOf(member(line, "message"), "tool_calls")) {
      const called = member(call, "function");
      const written = member(called, "arguments") ?? {};
      const name = textOf(called, "name") ?? "";
      this.#push({ name, arguments: typeof written === "string" ? written : writeExact(written) });
    }
  }

  #push(call: { readonly name: string; readonly arguments: string }): void {
    if (this.#calls > 0 && !this.#options.parallelToolCalls) return;
    const place = { candidate: this.#candidate, call: this.#calls };
    this.#calls += 1;
    this.#batch.push({ type: "function_call", ...place, name: call.name });
    this.#batch.push({ type: "function_call_arguments", ...place, delta: call.arguments });
  }

  #finish(line: unknown): void {
    this.#isDone = true;
    const rawFinishReason = textOf(line, "done_reason");
    const finish = { candidate: this.#candidate, finishReason: finishReason(rawFinishReason, this.#calls) };
    this.#batch.push({ type: "finish", ...finish, ...(rawFinishReason === undefined ? {} : { rawFinishReason }) });
    this.#batch.push(usageOf(line));
  }
}

function parsedLine(text: string): unknown {
  try {
    const line: unknown = JSON.parse(text);
    if (typeof line === "object" && line !== null) return line;
  } catch {
    // Not as the cause: the parser may quote the line, which must not reach a log.
    throw new CoreError("backend-error", "Ollama sent a line that is not JSON.");
  }
  throw new CoreError("backend-error", "Ollama sent a line that is not a JSON object.");
}

/** `load` and `unload` end an answer without text. A call ends it with `stop`, whatever follows it. */
function finishReason(raw: string | undefined, calls: number): FinishReason {
  if (calls > 0) return "tool_calls";
  return raw === "length" ? "length" : "stop";
}

function usageOf(line: unknown): BackendEvent {
  const loadMs = milliseconds(line, "load_duration");
  const promptMs = milliseconds(line, "prompt_eval_duration");
  const generationMs = milliseconds(line, "eval_duration");
  return {
    type: "usage",
    // Ollama counts neither cached tokens nor those of thinking apart.
    usage: {
      inputTokens: numberOf(line, "prompt_eval_count") ?? 0,
      outputTokens: numberOf(line, "eval_count") ?? 0,
      cachedInputTokens: 0,
      reasoningTokens: 0,
    },
    ...(loadMs === undefined ? {} : { loadMs }),
    ...(promptMs === undefined ? {} : { promptMs }),
    ...(generationMs === undefined ? {} : { generationMs }),
  };
}

/** Ollama's durations are nanoseconds. */
export function milliseconds(line: unknown, name: string): number | undefined {
  const nanoseconds = numberOf(line, name);
  return nanoseconds === undefined ? undefined : nanoseconds / 1e6;
}

function toLogprob(entry: unknown): TokenLogprob {
  return { ...tokenOf(entry), top: listOf(entry, "top_logprobs").map(tokenOf) };
}

function tokenOf(entry: unknown): { token: string; logprob: number; bytes: readonly number[] } {
  const token = textOf(entry, "token") ?? "";
  const bytes = listOf(entry, "bytes").filter((byte) => typeof byte === "number");
  return {
    token,
    logprob: numberOf(entry, "logprob") ?? Number.NEGATIVE_INFINITY,
    bytes: bytes.length > 0 ? bytes : [...new TextEncoder().encode(token)],
  };
}
