import { open } from "node:fs/promises";
import { type KnownModelFile, type OnProgress, sizeOf } from "./model-file.ts";

export interface DownloadOptions {
  readonly onProgress: OnProgress;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds until the answer must have begun. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds without a byte after which the connection counts as dead. Default 20000. */
  readonly stallTimeoutMs?: number;
}

/** Tries in a row, each going on where the one before stopped. */
const attempts = 3;

/**
 * Downloads a file, going on from what an earlier try left in `part`. The caller verifies it: two processes that write
 * one part spoil it, and the hash tells.
 * @throws Error when the address does not answer, refuses, or breaks off again and again.
 */
export async function download(file: KnownModelFile, part: string, options: DownloadOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const before = (await sizeOf(part)) ?? 0;
    try {
      await downloadOnce(file, part, options);
      return;
    } catch (error) {
      options.signal?.throwIfAborted();
      const hasGrown = ((await sizeOf(part)) ?? 0) > before;
      if (!hasGrown || attempt === attempts) throw error;
    }
  }
}

async function downloadOnce(file: KnownModelFile, part: string, options: DownloadOptions): Promise<void> {
  const { onProgress, signal, connectTimeoutMs = 5000, stallTimeoutMs = 20_000 } = options;
  const present = (await sizeOf(part)) ?? 0;
  if (present === file.sizeBytes) return;
  const from = present < file.sizeBytes ? present : 0;

  const connection = new AbortController();
  const abort = () => connection.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  let timer = setTimeout(() => connection.abort(new Error("no answer")), connectTimeoutMs);
  try {
    signal?.throwIfAborted();
    const headers: Record<string, string> = from > 0 ? { range: `bytes=${from}-` } : {};
    const answer = await fetch(file.url, { headers, signal: connection.signal });
    if (!answer.ok || answer.body === null) throw new Error(`it answered ${answer.status}`);
    clearTimeout(timer);
    timer = setTimeout(() => connection.abort(new Error("it fell silent")), stallTimeoutMs);
    // 200 instead of 206: the whole file comes again.
    const start = answer.status === 206 ? from : 0;
    await writeBody(answer.body, part, start, (doneBytes) => {
      timer.refresh();
      if (doneBytes > file.sizeBytes) throw new Error("it sends more than the file has");
      onProgress({ source: "hub", doneBytes, totalBytes: file.sizeBytes });
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    // Ends what is left of the connection; nothing happens when it was read to its end.
    connection.abort();
  }
  const got = (await sizeOf(part)) ?? 0;
  if (got !== file.sizeBytes) throw new Error(`it broke off after ${got} of ${file.sizeBytes} bytes`);
}

async function writeBody(
  body: ReadableStream<Uint8Array>,
  part: string,
  start: number,
  onBytes: (doneBytes: number) => void,
): Promise<void> {
  const target = await open(part, start === 0 ? "w" : "a");
  try {
    let done = start;
    for await (const chunk of body) {
      await target.write(chunk);
      done += chunk.byteLength;
      onBytes(done);
    }
  } finally {
    await target.close();
  }
}
