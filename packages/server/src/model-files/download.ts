import { dirname } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { CoreError } from "@plenum/core";
import { asStorageProblem, requireSpace } from "./disk-space.ts";
import { DownloadError, toDownloadError } from "./download-error.ts";
import { type PartState, PartWriter, readPartState, removePart, writePartState } from "./part-file.ts";
import { type RemoteFile, request } from "./remote-file.ts";

export interface DownloadOptions {
  /** Told often. @param totalBytes undefined: not known */
  readonly onBytes: (doneBytes: number, totalBytes: number | undefined) => void;
  readonly signal: AbortSignal;
  /** First bytes that the file must have. Default: any. */
  readonly magic?: string;
  /** Milliseconds until the answer must have begun. Default 30000. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds without a byte after which the connection counts as dead. Default 30000. */
  readonly stallTimeoutMs?: number;
  /** Milliseconds before the second try that got nothing; it doubles. Default 500. */
  readonly retryDelayMs?: number;
  /** Tries in a row that may get nothing; one that got bytes counts as none. Default 3. */
  readonly fruitlessAttempts?: number;
}

export interface Downloaded {
  readonly sizeBytes: number;
  /** Hex, lower case. */
  readonly sha256: string;
  /** Strong entity tag that the server gave. */
  readonly etag?: string;
}

/** Longest wait that a server may ask for. */
const mostRetryAfterMs = 60_000;

/**
 * Downloads a file into `part`, going on from what an earlier try left there when that is sure to be the same file: by its
 * entity tag, or by the hash that is checked at the end. What is there stays when it fails or is aborted, unless it is wrong.
 * @throws DownloadError; CoreError insufficient-storage; the signal's reason.
 */
export async function download(file: RemoteFile, part: string, options: DownloadOptions): Promise<Downloaded> {
  const work = new Download(file, part, options);
  try {
    return await work.run();
  } finally {
    await work.close();
  }
}

class Download {
  readonly #file: RemoteFile;
  readonly #part: string;
  readonly #options: DownloadOptions;
  readonly #writer: PartWriter;
  #state: PartState | undefined;
  #hasResumed = false;

  constructor(file: RemoteFile, part: string, options: DownloadOptions) {
    this.#file = file;
    this.#part = part;
    this.#options = options;
    this.#writer = new PartWriter(part);
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  async run(): Promise<Downloaded> {
    const { signal } = this.#options;
    signal.throwIfAborted();
    this.#state = await readPartState(this.#part);
    if (this.#state !== undefined && this.#state.url !== this.#file.url && this.#file.sha256 === undefined) {
      await this.#startOver();
    }
    for (;;) {
      await this.#receive();
      const sha256 = await this.#writer.finish(signal);
      const { sha256: expected } = this.#file;
      if (expected === undefined || expected === sha256) {
        const etag = this.#state?.etag;
        return { sizeBytes: await this.#writer.size(), sha256, ...(etag !== undefined && { etag }) };
      }
      const hadResumed = this.#hasResumed;
      await this.#startOver();
      // What an earlier try left may have been the wrong part; then the rest is not to blame.
      if (!hadResumed) throw new DownloadError("mismatch", `its sha256 is ${sha256}, not ${expected}`);
    }
  }

  /** Until the file is whole. */
  async #receive(): Promise<void> {
    const { signal, retryDelayMs = 500, fruitlessAttempts = 3 } = this.#options;
    for (let fruitless = 0; ; ) {
      const before = await this.#writer.size();
      try {
        if (await this.#receiveOnce()) return;
      } catch (caught) {
        signal.throwIfAborted();
        const storage = await asStorageProblem(caught, dirname(this.#part), this.#expectedBytes ?? 0);
        if (storage instanceof CoreError) throw storage;
        const error = toDownloadError(caught);
        if (error.kind !== "broken") throw error;
        fruitless = (await this.#writer.size()) > before ? 0 : fruitless + 1;
        if (fruitless === fruitlessAttempts) throw error;
        const delayMs = fruitless === 0 ? 0 : retryDelayMs * 2 ** (fruitless - 1);
        await pause(Math.max(delayMs, Math.min(error.retryAfterMs ?? 0, mostRetryAfterMs)), undefined, { signal });
      }
    }
  }

  get #expectedBytes(): number | undefined {
    return this.#file.sizeBytes ?? this.#state?.sizeBytes;
  }

  /** @returns true when the file is whole. */
  async #receiveOnce(): Promise<boolean> {
    const from = await this.#resumeFrom();
    if (from > 0 && from === this.#expectedBytes) return true;
    if (this.#expectedBytes !== undefined) await requireSpace(dirname(this.#part), this.#expectedBytes - from);
    const { signal, connectTimeoutMs = 30_000, stallTimeoutMs = 30_000 } = this.#options;
    const connection = new AbortController();
    const abort = () => connection.abort(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    let timer = setTimeout(() => connection.abort(new Error("it gave no answer")), connectTimeoutMs);
    try {
      const answer = await request(this.#file, { headers: this.#rangeHeaders(from), signal: connection.signal });
      clearTimeout(timer);
      timer = setTimeout(() => connection.abort(new Error("it fell silent")), stallTimeoutMs);
      await this.#takeAnswer(answer, from, () => timer.refresh());
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      // Ends what is left of the connection; nothing happens when it was read to its end.
      connection.abort();
    }
    const size = await this.#writer.size();
    const expected = this.#expectedBytes;
    if (expected === undefined || size === expected) return true;
    throw new DownloadError("broken", `it broke off after ${size} of ${expected} bytes`);
  }

  /** The byte to go on from; 0 when it can't be told that what is there belongs to this file. */
  async #resumeFrom(): Promise<number> {
    const size = await this.#writer.size();
    if (size === 0) return 0;
    const isSure = this.#file.sha256 !== undefined || this.#state?.etag !== undefined;
    const isTooLong = this.#expectedBytes !== undefined && size > this.#expectedBytes;
    return isSure && !isTooLong ? size : 0;
  }

  #rangeHeaders(from: number): Record<string, string> {
    if (from === 0) return {};
    const etag = this.#state?.etag;
    return { range: `bytes=${from}-`, ...(etag !== undefined && { "if-range": etag }) };
  }

  async #takeAnswer(answer: Response, from: number, onChunk: () => void): Promise<void> {
    if (answer.status === 416) {
      await this.#startOver();
      throw new DownloadError("broken", "it has not the bytes that are asked for", { status: 416 });
    }
    if (!answer.ok || answer.body === null) throw refusal(answer);
    // 200 instead of 206: the file is another one now, or the server knows no ranges. It comes as a whole.
    const start = answer.status === 206 ? startOf(answer, from) : 0;
    if (start === undefined) {
      await this.#startOver();
      throw new DownloadError("broken", "it sends other bytes than those that are asked for");
    }
    await this.#noteFacts(answer, start);
    const total = this.#expectedBytes;
    if (total !== undefined) await requireSpace(dirname(this.#part), total - start);
    this.#hasResumed ||= start > 0;
    await this.#writer.openAt(start, this.#options.signal);
    await this.#takeBody(answer.body, start, onChunk);
  }

  async #noteFacts(answer: Response, start: number): Promise<void> {
    const etag = answer.headers.get("etag");
    const sizeBytes = totalOf(answer, start);
    const expected = this.#file.sizeBytes;
    if (expected !== undefined && sizeBytes !== undefined && sizeBytes !== expected) {
      throw new DownloadError("mismatch", `it has ${sizeBytes} bytes, not ${expected}`);
    }
    this.#state = {
      url: this.#file.url,
      ...(etag !== null && !etag.startsWith("W/") && { etag }),
      ...(sizeBytes !== undefined && { sizeBytes }),
    };
    await writePartState(this.#part, this.#state);
  }

  async #takeBody(body: ReadableStream<Uint8Array>, start: number, onChunk: () => void): Promise<void> {
    const { magic, onBytes } = this.#options;
    const total = this.#expectedBytes;
    let done = start;
    if (start > 0) onBytes(done, total);
    for await (const chunk of body) {
      onChunk();
      if (done === 0 && magic !== undefined && !beginsWith(chunk, magic)) {
        throw new DownloadError("mismatch", `it is no ${magic} file`);
      }
      done += chunk.byteLength;
      if (total !== undefined && done > total) {
        await this.#startOver();
        throw new DownloadError("mismatch", "it sends more than the file has");
      }
      await this.#writer.write(chunk);
      onBytes(done, total);
    }
  }

  async #startOver(): Promise<void> {
    await this.#writer.close();
    await removePart(this.#part);
    this.#state = undefined;
    this.#hasResumed = false;
  }
}

function refusal(answer: Response): DownloadError {
  const { status } = answer;
  const isPassing = status >= 500 || status === 408 || status === 429;
  const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN);
  return new DownloadError(isPassing ? "broken" : "refused", `it answered ${status}`, {
    status,
    ...(Number.isFinite(seconds) && { retryAfterMs: seconds * 1000 }),
  });
}

/** @returns undefined when the range is not the one that was asked for. */
function startOf(answer: Response, from: number): number | undefined {
  const range = /^bytes (\d+)-/.exec(answer.headers.get("content-range") ?? "");
  // A server that leaves the header out is taken at its word; the size and the hash tell.
  return range === null || Number(range[1]) === from ? from : undefined;
}

function totalOf(answer: Response, start: number): number | undefined {
  const total = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
  if (total !== undefined) return Number(total);
  const length = answer.headers.get("content-length");
  return length === null ? undefined : start + Number(length);
}

/** A first chunk that is shorter than the magic is let pass: whoever reads the file looks again. */
function beginsWith(chunk: Uint8Array, magic: string): boolean {
  const length = Math.min(chunk.byteLength, magic.length);
  return Buffer.from(chunk.subarray(0, length)).toString("latin1") === magic.slice(0, length);
}
