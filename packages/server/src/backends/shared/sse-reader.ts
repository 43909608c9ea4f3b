import { CoreError } from "@plenum/core";
import { Utf8Reads } from "./utf8-reads.ts";

/** @param type the `event` field; empty when there was none */
export type SseListener = (data: string, type: string) => void;

const defaultEventCharacters = 4 * 1024 * 1024;

/**
 * Event stream by the WHATWG grammar, pushed in as bytes: LF, CR and CRLF end a line, also cut over reads; comments,
 * a byte-order mark, data of several lines and unknown fields are taken. `id` and `retry` mean nothing to a backend.
 */
export class SseReader {
  readonly #listener: SseListener;
  readonly #maxEventCharacters: number;
  readonly #utf8 = new Utf8Reads();
  #line = "";
  #data: string | undefined;
  #type = "";
  /** The last line ended with a CR that was the last character: an LF that follows belongs to it. */
  #mayFollowCr = false;

  /** @param maxEventCharacters UTF-16 units that one event may take. @default 4194304 */
  constructor(listener: SseListener, maxEventCharacters: number = defaultEventCharacters) {
    this.#listener = listener;
    this.#maxEventCharacters = maxEventCharacters;
  }

  /** Gives every event that these bytes complete. @throws CoreError backend-error for an event that is too long */
  push(chunk: Uint8Array): void {
    this.#take(this.#utf8.read(chunk));
  }

  /**
   * Ends the stream. The grammar drops an event without its blank line; servers leave it out behind their last one, so
   * what is there is given.
   */
  end(): void {
    this.#take(this.#utf8.end());
    if (this.#line !== "") this.#endLine("");
    this.#dispatch();
  }

  #take(text: string): void {
    if (text === "") return;
    let from = 0;
    if (this.#mayFollowCr) {
      this.#mayFollowCr = false;
      if (text.charCodeAt(0) === 10) from = 1;
    }
    let lf = text.indexOf("\n", from);
    let cr = text.indexOf("\r", from);
    while (lf >= 0 || cr >= 0) {
      const isCr = cr >= 0 && (lf < 0 || cr < lf);
      const end = isCr ? cr : lf;
      this.#endLine(text.slice(from, end));
      from = end + 1;
      if (isCr && from === text.length) this.#mayFollowCr = true;
      if (isCr && lf === from) from += 1;
      if (lf >= 0 && lf < from) lf = text.indexOf("\n", from);
      if (isCr) cr = text.indexOf("\r", from);
    }
    if (from < text.length) this.#line += from === 0 ? text : text.slice(from);
    this.#checkLength(this.#line.length);
  }

  #endLine(piece: string): void {
    const line = this.#line === "" ? piece : this.#line + piece;
    this.#line = "";
    if (line === "") this.#dispatch();
    // The common line first: `data:`, with or without a space behind it.
    else if (line.startsWith("data:")) this.#addData(line.slice(line.charCodeAt(5) === 32 ? 6 : 5));
    else this.#takeField(line);
  }

  #takeField(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const from = line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1;
    const value = colon < 0 ? "" : line.slice(from);
    if (name === "data") this.#addData(value);
    else if (name === "event") this.#type = value;
  }

  #addData(value: string): void {
    this.#checkLength(value.length);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  #dispatch(): void {
    const data = this.#data;
    const type = this.#type;
    this.#data = undefined;
    this.#type = "";
    if (data !== undefined) this.#listener(data, type);
  }

  #checkLength(added: number): void {
    if ((this.#data?.length ?? 0) + added <= this.#maxEventCharacters) return;
    throw new CoreError(
      "backend-error",
      `The runtime sent an event of more than ${this.#maxEventCharacters} characters; its stream was closed.`,
      { limit: this.#maxEventCharacters },
    );
  }
}
