/**
 * Text of a byte stream, read by read. A character that is cut over reads waits for its rest; bytes that are no UTF-8
 * become U+FFFD as everywhere on the web; one byte-order mark at the beginning is left out.
 */
export class Utf8Reads {
  #rest: Uint8Array | undefined;
  #isAtStart = true;

  /** Text of this read, as far as its characters are whole. */
  read(chunk: Uint8Array): string {
    const bytes = this.#rest === undefined ? buffer(chunk) : Buffer.concat([this.#rest, chunk]);
    const whole = wholeLength(bytes);
    this.#rest = whole === bytes.length ? undefined : Uint8Array.prototype.slice.call(bytes, whole);
    return this.#withoutMark(bytes.toString("utf8", 0, whole));
  }

  /** What is left at the end: nothing, or U+FFFD for a character that was cut off. */
  end(): string {
    const rest = this.#rest;
    this.#rest = undefined;
    return rest === undefined ? "" : this.#withoutMark(buffer(rest).toString("utf8"));
  }

  #withoutMark(text: string): string {
    if (!this.#isAtStart || text === "") return text;
    this.#isAtStart = false;
    return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  }
}

function buffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Bytes up to a character at the end that may still be continued. */
function wholeLength(bytes: Uint8Array): number {
  const { length } = bytes;
  for (let back = 1; back <= 3 && back <= length; back += 1) {
    const byte = bytes[length - back] ?? 0;
    if (byte < 0x80) return length;
    if (byte >= 0xc0) return sequenceLength(byte) > back && mayFollow(bytes, length - back) ? length - back : length;
  }
  return length;
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return lead <= 0xf4 ? 4 : 1;
  if (lead >= 0xe0) return 3;
  return lead >= 0xc2 ? 2 : 1;
}

/** Whether the second byte, when it is there, can stand behind this lead byte (RFC 3629 §4). */
function mayFollow(bytes: Uint8Array, at: number): boolean {
  const lead = bytes[at] ?? 0;
  const second = bytes[at + 1];
  if (second === undefined) return true;
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second <= 0x9f;
  if (lead === 0xf0) return second >= 0x90;
  return lead !== 0xf4 || second <= 0x8f;
}
