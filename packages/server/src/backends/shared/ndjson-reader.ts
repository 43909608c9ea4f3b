import { CoreError } from "@plenum/core";
import { Utf8Reads } from "./utf8-reads.ts";

const defaultLineCharacters = 4 * 1024 * 1024;

/** Lines of JSON, pushed in as bytes. Blank lines are left out; the last line needs no end. */
export class NdjsonReader {
  readonly #listener: (line: string) => void;
  readonly #maxLineCharacters: number;
  readonly #utf8 = new Utf8Reads();
  #line = "";

  /** @param maxLineCharacters UTF-16 units that one line may take. @default 4194304 */
  constructor(listener: (line: string) => void, maxLineCharacters: number = defaultLineCharacters) {
    this.#listener = listener;
    this.#maxLineCharacters = maxLineCharacters;
  }

  /** Gives every line that these bytes complete. @throws CoreError backend-error for a line that is too long */
  push(chunk: Uint8Array): void {
    this.#take(this.#utf8.read(chunk));
  }

  /** Ends the stream and gives a last line without its end. */
  end(): void {
    this.#take(this.#utf8.end());
    this.#give("");
  }

  #take(text: string): void {
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#give(text.slice(from, end));
      from = end + 1;
    }
    if (from < text.length) this.#line += text.slice(from);
    this.#checkLength(this.#line);
  }

  #give(piece: string): void {
    const line = (this.#line === "" ? piece : this.#line + piece).trim();
    this.#line = "";
    this.#checkLength(line);
    if (line !== "") this.#listener(line);
  }

  #checkLength(line: string): void {
    if (line.length <= this.#maxLineCharacters) return;
    throw new CoreError(
      "backend-error",
      `The runtime sent a line of more than ${this.#maxLineCharacters} characters; its stream was closed.`,
      { limit: this.#maxLineCharacters },
    );
  }
}
