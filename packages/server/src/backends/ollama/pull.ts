import { CoreError, type TaskProgress } from "@plenum/core";
import { cleanMessage } from "../shared/error-facts.ts";
import { NdjsonReader } from "../shared/ndjson-reader.ts";
import type { Upstream } from "../shared/upstream.ts";
import type { UpstreamAnswer, UpstreamReader } from "../shared/upstream-call.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import { numberOf, textOf } from "./json-fields.ts";

/** Milliseconds until Ollama begins to answer: it asks its registry first. */
const headTimeoutMs = 120_000;

/**
 * Has Ollama pull a model (`POST /api/pull`); its own lines are the progress.
 * @throws CoreError not-found, backend-unavailable, backend-error; the signal's reason, upon which Ollama stops, too.
 */
export async function pullModel(
  upstream: Upstream,
  model: string,
  onProgress: (progress: TaskProgress) => void,
  signal: AbortSignal,
): Promise<void> {
  const reader = new PullReader(model, onProgress);
  const body = { model, stream: true };
  await upstream.stream({ method: "POST", path: "/api/pull", body, headTimeoutMs, signal }, reader);
  reader.end();
}

class PullReader implements UpstreamReader {
  readonly #model: string;
  readonly #onProgress: (progress: TaskProgress) => void;
  readonly #lines = new NdjsonReader((line) => this.#take(line));
  #isDone = false;

  constructor(model: string, onProgress: (progress: TaskProgress) => void) {
    this.#model = model;
    this.#onProgress = onProgress;
  }

  onHead(status: number): boolean {
    return status === 200;
  }

  onData(chunk: Uint8Array): void {
    this.#lines.push(chunk);
  }

  onRefused(answer: UpstreamAnswer): Error {
    const said = textOf(answer.body, "error");
    return said === undefined ? upstreamError(answer, { model: this.#model }) : pullError(this.#model, said);
  }

  /** @throws CoreError backend-error when the last line has not come. */
  end(): void {
    this.#lines.end();
    if (this.#isDone) return;
    throw new CoreError("backend-error", `Ollama broke the pull of ${this.#model} off; pull it again to go on.`);
  }

  #take(text: string): void {
    const line = parse(text);
    const error = textOf(line, "error");
    if (error !== undefined) throw pullError(this.#model, error);
    const step = textOf(line, "status");
    if (step === undefined) return;
    if (step === "success") this.#isDone = true;
    const total = numberOf(line, "total");
    const digest = textOf(line, "digest");
    this.#onProgress({
      done: numberOf(line, "completed") ?? 0,
      ...(total !== undefined && { total }),
      unit: "bytes",
      step,
      ...(digest !== undefined && { digest }),
    });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CoreError("backend-error", "Ollama's progress is no JSON.");
  }
}

/** Ollama answers 500, or a line within 200, whatever is at fault. */
function pullError(model: string, said: string): CoreError {
  const words = cleanMessage(said).replace(/\.$/, "");
  if (/file does not exist|not found/i.test(said)) {
    return new CoreError("not-found", `Ollama's registry has no model ${model}; look at the name.`, {
      param: "source",
    });
  }
  if (/dial tcp|no such host|connection refused|timeout|deadline exceeded|EOF/i.test(said)) {
    return new CoreError("backend-unavailable", `Ollama can't reach its registry: ${words}.`);
  }
  return new CoreError("backend-error", `Ollama could not pull ${model}: ${words}.`);
}
