import type { FileHandle } from "node:fs/promises";

const chunkBytes = 256 * 1024;
/** No header of a real model comes near: the largest vocabularies take about 30 MB. */
const mostHeaderBytes = 512 * 1024 * 1024;

/** What is wrong with a file, as the end of the sentence "<file> …". */
export class GgufFormatError extends Error {
  override readonly name = "GgufFormatError";
}

/** Reads little-endian values from the start of a file, a chunk at a time, and refuses lengths before it allocates. */
export class HeaderReader {
  readonly #file: FileHandle;
  readonly #sizeBytes: number;
  #buffer = Buffer.alloc(0);
  /** Place in `#buffer`. */
  #at = 0;
  /** Place in the file of the end of `#buffer`. */
  #end = 0;

  constructor(file: FileHandle, sizeBytes: number) {
    this.#file = file;
    this.#sizeBytes = sizeBytes;
  }

  /** Bytes read or skipped so far. */
  get position(): number {
    return this.#end - (this.#buffer.length - this.#at);
  }

  async bytes(length: number): Promise<Buffer> {
    await this.#need(length);
    const bytes = this.#buffer.subarray(this.#at, this.#at + length);
    this.#at += length;
    return bytes;
  }

  async u32(): Promise<number> {
    return (await this.bytes(4)).readUInt32LE(0);
  }

  /** A length or a count. */
  async size(): Promise<number> {
    if (this.#buffer.length - this.#at < 8) await this.#need(8);
    const low = this.#buffer.readUInt32LE(this.#at);
    const high = this.#buffer.readUInt32LE(this.#at + 4);
    this.#at += 8;
    return high * 0x1_0000_0000 + low;
  }

  /** @param mostBytes longest text taken */
  async text(mostBytes: number): Promise<string> {
    const length = await this.size();
    if (length > mostBytes) throw new GgufFormatError("holds a text that is too long, so it is damaged");
    return (await this.bytes(length)).toString("utf8");
  }

  async skip(length: number): Promise<void> {
    if (length <= this.#buffer.length - this.#at) {
      this.#at += length;
      return;
    }
    const target = this.position + length;
    this.#check(target);
    this.#buffer = Buffer.alloc(0);
    this.#at = 0;
    this.#end = target;
  }

  async #need(length: number): Promise<void> {
    const rest = this.#buffer.length - this.#at;
    if (length <= rest) return;
    this.#check(this.position + length);
    const chunk = Buffer.alloc(Math.max(chunkBytes, length - rest));
    const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, this.#end);
    this.#buffer = Buffer.concat([this.#buffer.subarray(this.#at), chunk.subarray(0, bytesRead)]);
    this.#at = 0;
    this.#end += bytesRead;
    if (this.#buffer.length < length) throw cutOff();
  }

  #check(end: number): void {
    if (end > this.#sizeBytes) throw cutOff();
    if (end > mostHeaderBytes) throw new GgufFormatError("has a header that is too long, so it is damaged");
  }
}

function cutOff(): GgufFormatError {
  return new GgufFormatError("ends in the middle of its header, so it is cut off or damaged");
}
