import { type BackendEvent, type BackendRequest, type BackendSink, CoreError } from "@plenum/core";
import { parseExact, writeExact, writeJson } from "../shared/exact-json.ts";
import { Candidate } from "../shared/openai/candidate.ts";
import { usageEvent } from "../shared/openai/chunk-fields.ts";
import { countOf, isLoose, type Loose, listOf } from "../shared/openai/loose.ts";
import { SseReader } from "../shared/sse-reader.ts";
import { isErrorBody, streamedError } from "../shared/upstream-errors.ts";
import { TextChunk } from "./text-chunk.ts";

/** Keep-alives that servers send as data are shorter than this; what is longer and no JSON is garbage. */
const mostKeepAliveCharacters = 64;

/** An answer's bytes as core events: one batch for each read. */
export class AnswerReader {
  readonly #request: BackendRequest;
  readonly #sink: BackendSink;
  readonly #sse: SseReader;
  readonly #candidates: Candidate[] = [];
  #begun = 0;
  #finished = 0;
  readonly #usual = new TextChunk();
  #events: BackendEvent[] = [];
  #usage: Loose = {};
  #timings: Loose = {};
  #hasEnded = false;
  /** The server wrote its sentinel: nothing that follows counts. */
  isDone = false;

  constructor(request: BackendRequest, sink: BackendSink) {
    this.#request = request;
    this.#sink = sink;
    this.#sse = new SseReader((data, type) => this.#takeData(data, type));
    for (let index = 0; index < request.candidates; index += 1) this.#candidates.push(new Candidate(index, request));
  }

  /** The server said that every candidate has ended. */
  get hasFinished(): boolean {
    return this.#finished === this.#candidates.length;
  }

  /** Every candidate that was begun has ended, so that only the sentinel can be missing. */
  get #isWhole(): boolean {
    return this.#begun > 0 && (this.isDone || this.#finished === this.#begun);
  }

  /** The server has taken the request. */
  accept(facts: { readonly isWhole?: true } = {}): void {
    this.#sink([{ type: "accepted", ...facts }]);
  }

  /** @throws CoreError for an error in the stream, and what is no answer */
  push(chunk: Uint8Array): void {
    this.#sse.push(chunk);
    this.#flush();
  }

  /** A whole answer as one JSON text, from servers that do not stream. */
  takeWhole(text: string): void {
    this.#takeChunk(text);
    this.#flush();
  }

  /** The end of the body. @throws CoreError backend-error when the answer was not whole */
  end(): void {
    if (this.#hasEnded) return;
    this.#sse.end();
    if (!this.#isWhole) {
      throw new CoreError("backend-error", "The runtime's answer broke off before its end.", {
        model: this.#request.model,
      });
    }
    this.#hasEnded = true;
    for (const candidate of this.#candidates) candidate.end(this.#events);
    const deltas = this.#candidates.reduce((sum, candidate) => sum + candidate.deltas, 0);
    this.#events.push(usageEvent(this.#usage, this.#timings, deltas, this.#candidates.length));
    this.#flush();
  }

  #flush(): void {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.#sink(events);
  }

  #takeData(data: string, type: string): void {
    if (this.isDone) return;
    const first = data.charCodeAt(0);
    if (first === 123 && type !== "error") this.#takeChunk(data);
    else if (data.trim() === "[DONE]") this.isDone = true;
    else if (type === "error") throw this.#failed(parsed(data) ?? data);
    else if (data.trimStart().startsWith("{")) this.#takeChunk(data);
    else if (data.length > mostKeepAliveCharacters) throw notAnAnswer();
  }

  #takeChunk(data: string): void {
    const text = this.#usual.textOf(data);
    if (text !== undefined) {
      this.#usual.noteHit();
      this.#candidates[0]?.takeText(text, this.#events);
      return;
    }
    const chunk = parsed(data);
    if (!isLoose(chunk)) throw notAnAnswer();
    if (this.#begun > 0) this.#usual.learn(data, chunk);
    if (isErrorBody(chunk)) throw this.#failed(chunk);
    const { choices, usage, timings } = chunk;
    if (isLoose(usage)) this.#usage = usage;
    if (isLoose(timings)) this.#timings = timings;
    const list = listOf(choices);
    for (const [place, choice] of list.entries()) {
      if (isLoose(choice)) this.#takeChoice(choice, place, data);
    }
  }

  #takeChoice(choice: Loose, place: number, data: string): void {
    const candidate = this.#candidates[countOf(choice["index"]) ?? 0];
    if (candidate === undefined) return;
    if (!candidate.hasBegun) this.#begun += 1;
    const hadFinished = candidate.hasFinished;
    // Numbers of arguments that came as an object are exact only in the chunk's own text, so that is read once more.
    candidate.take(choice, this.#events, (value) => exactArguments(value, data, place));
    if (candidate.hasFinished && !hadFinished) this.#finished += 1;
  }

  #failed(body: unknown): CoreError {
    this.#flush();
    return streamedError(isLoose(body) ? body : { error: body }, { model: this.#request.model });
  }
}

/** The arguments object as it stands in the chunk's text: the same place of the same choice, with exact numbers. */
function exactArguments(value: unknown, data: string, place: number): string {
  const wanted = writeJson(value);
  const chunk = parseExact(data);
  const choice = isLoose(chunk) ? listOf(chunk["choices"])[place] : undefined;
  for (const found of objectsIn(choice)) {
    const text = writeExact(found);
    if (writeJson(parsed(text)) === wanted) return text;
  }
  return wanted;
}

/** Every `arguments` object below a choice. */
function objectsIn(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn);
  if (!isLoose(value)) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === "arguments" && isLoose(member) ? [member] : objectsIn(member),
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is no JSON is told by what the caller expects.
    return undefined;
  }
}

function notAnAnswer(): CoreError {
  return new CoreError("backend-error", "The runtime sent something that is no answer; its stream was closed.");
}
