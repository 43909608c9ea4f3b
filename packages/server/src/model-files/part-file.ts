import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { sizeOf } from "./model-file.ts";

/** What is known of a download that has begun, beside its bytes. */
export interface PartState {
  readonly url: string;
  /** Strong entity tag of the server. */
  readonly etag?: string;
  /** Bytes of the whole file. */
  readonly sizeBytes?: number;
}

const stateFile = (part: string): string => `${part}.json`;

/** Undefined: there is none, or it can't be read. */
export async function readPartState(part: string): Promise<PartState | undefined> {
  try {
    const state: unknown = JSON.parse(await readFile(stateFile(part), "utf8"));
    if (typeof state !== "object" || state === null) return undefined;
    const { url, etag, sizeBytes } = Object.fromEntries(Object.entries(state));
    if (typeof url !== "string") return undefined;
    return {
      url,
      ...(typeof etag === "string" && { etag }),
      ...(typeof sizeBytes === "number" && { sizeBytes }),
    };
  } catch {
    return undefined;
  }
}

export async function writePartState(part: string, state: PartState): Promise<void> {
  await writeFile(`${stateFile(part)}.tmp`, JSON.stringify(state));
  await rename(`${stateFile(part)}.tmp`, stateFile(part));
}

/** Forgets a download: its bytes and what is known of it. */
export async function removePart(part: string): Promise<void> {
  await Promise.all([rm(part, { force: true }), rm(stateFile(part), { force: true })]);
}

/** Gives the file its name, on the disk as well, and forgets the state. */
export async function placePart(part: string, path: string): Promise<void> {
  await rename(part, path);
  await rm(stateFile(part), { force: true });
}

/** Bytes of a partial file and their hash, which grow together. */
export class PartWriter {
  readonly #part: string;
  #file: FileHandle | undefined;
  #hash: Hash = createHash("sha256");
  /** Bytes that the hash covers. */
  #hashedBytes = 0;

  constructor(part: string) {
    this.#part = part;
  }

  /** Bytes that are there. */
  async size(): Promise<number> {
    return (await sizeOf(this.#part)) ?? 0;
  }

  /** Opens the file to write from this byte on: 0, or its size. */
  async openAt(start: number, signal: AbortSignal): Promise<void> {
    await this.close();
    if (start !== this.#hashedBytes) {
      this.#hash = createHash("sha256");
      this.#hashedBytes = 0;
      if (start > 0) await this.#hashPresent(signal);
    }
    this.#file = await open(this.#part, start === 0 ? "w" : "a");
  }

  async write(chunk: Uint8Array): Promise<void> {
    if (this.#file === undefined) throw new Error("the part is not open");
    for (let at = 0; at < chunk.byteLength; ) at += (await this.#file.write(chunk, at)).bytesWritten;
    this.#hash.update(chunk);
    this.#hashedBytes += chunk.byteLength;
  }

  /** SHA-256 of all of it, hex; it is on the disk when this resolves. */
  async finish(signal: AbortSignal): Promise<string> {
    const size = await this.size();
    if (size !== this.#hashedBytes) await this.openAt(size, signal);
    this.#file ??= await open(this.#part, "a");
    await this.#file.sync();
    await this.close();
    return this.#hash.copy().digest("hex");
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #hashPresent(signal: AbortSignal): Promise<void> {
    for await (const chunk of createReadStream(this.#part, { highWaterMark: 1 << 20 })) {
      signal.throwIfAborted();
      this.#hash.update(chunk);
      this.#hashedBytes += chunk.length;
    }
  }
}
