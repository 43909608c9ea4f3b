/** Where a member's value stands in the text; `to` is absent while it is still being written. */
export interface ScannedMember {
  readonly from: number;
  to?: number;
}

type Expected = "value" | "value-or-end" | "key" | "key-or-end" | "colon" | "comma-or-end";

const numberText = /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/;
const numberCharacter = /[-+.eE0-9]/;
const wordCharacter = /[a-z]/;
const words: ReadonlySet<string> = new Set(["true", "false", "null"]);

/**
 * Reads one JSON object character by character, strictly, and notes where the values of its own members stand, so that
 * their text can be cut out as it was written.
 */
export class JsonScanner {
  readonly members = new Map<string, ScannedMember>();
  /** `bad`: this is no JSON, whatever follows. */
  status: "open" | "done" | "bad" = "open";
  text = "";
  readonly #stack: ("{" | "[")[] = [];
  #expected: Expected = "value";
  /** Where the string, number or word that is being read began. */
  #tokenFrom = 0;
  #token: "string" | "number" | "word" | undefined;
  #isEscaped = false;
  /** Hexadecimal digits of `\\uXXXX` that are still to come. */
  #hexDigits = 0;
  #key: string | undefined;

  /** @returns how many UTF-16 units it took; fewer than given when the object ended before */
  push(text: string): number {
    for (let index = 0; index < text.length; index += 1) {
      if (this.status !== "open") return index;
      this.#take(text.charAt(index));
    }
    return text.length;
  }

  #take(character: string): void {
    const at = this.text.length;
    this.text += character;
    if (this.#token === "string") this.#inString(character, at);
    else if (this.#token === "number" && numberCharacter.test(character)) return;
    else if (this.#token === "word" && wordCharacter.test(character)) return;
    else {
      if (this.#token !== undefined) this.#endBareToken(at);
      if (this.status === "open") this.#between(character, at);
    }
  }

  #inString(character: string, at: number): void {
    if (this.#hexDigits > 0) {
      this.#hexDigits -= 1;
      if (!/[0-9a-fA-F]/.test(character)) this.status = "bad";
    } else if (this.#isEscaped) {
      this.#isEscaped = false;
      if (character === "u") this.#hexDigits = 4;
      else if (!'"\\/bfnrt'.includes(character)) this.status = "bad";
    } else if (character === "\\") this.#isEscaped = true;
    else if (character < " ") this.status = "bad";
    else if (character === '"') this.#endString(at + 1);
  }

  #endString(to: number): void {
    this.#token = undefined;
    if (this.#expected !== "key" && this.#expected !== "key-or-end") {
      this.#endValue(to);
      return;
    }
    if (this.#stack.length === 1) this.#key = String(JSON.parse(this.text.slice(this.#tokenFrom, to)));
    this.#expected = "colon";
  }

  #endBareToken(to: number): void {
    const token = this.text.slice(this.#tokenFrom, to);
    if (!(this.#token === "number" ? numberText.test(token) : words.has(token))) this.status = "bad";
    this.#token = undefined;
    this.#endValue(to);
  }

  #between(character: string, at: number): void {
    if (/[ \t\n\r]/.test(character)) return;
    if (character === "}" || character === "]") this.#close(character, at + 1);
    else if (character === "," && this.#expected === "comma-or-end") {
      this.#expected = this.#stack.at(-1) === "{" ? "key" : "value";
    } else if (character === ":" && this.#expected === "colon") this.#expected = "value";
    else if (this.#expected === "key" || this.#expected === "key-or-end") {
      if (character === '"') this.#begin("string", at);
      else this.status = "bad";
    } else if (this.#expected === "value" || this.#expected === "value-or-end") this.#beginValue(character, at);
    else this.status = "bad";
  }

  #begin(token: "string" | "number" | "word", at: number): void {
    this.#token = token;
    this.#tokenFrom = at;
  }

  #beginValue(character: string, at: number): void {
    if (this.#stack.length === 0 && character !== "{") this.status = "bad";
    if (this.#stack.length === 1 && this.#key !== undefined) this.members.set(this.#key, { from: at });
    if (character === "{" || character === "[") {
      this.#stack.push(character);
      this.#expected = character === "{" ? "key-or-end" : "value-or-end";
    } else if (character === '"') {
      this.#expected = "value";
      this.#begin("string", at);
    } else if (/[-0-9]/.test(character)) this.#begin("number", at);
    else if (/[tfn]/.test(character)) this.#begin("word", at);
    else this.status = "bad";
  }

  #close(character: "}" | "]", to: number): void {
    const open = this.#stack.at(-1);
    const mayClose =
      this.#expected === "comma-or-end" || this.#expected === (open === "{" ? "key-or-end" : "value-or-end");
    if (!mayClose || open !== (character === "}" ? "{" : "[")) {
      this.status = "bad";
      return;
    }
    this.#stack.pop();
    this.#endValue(to);
    if (this.#stack.length === 0 && this.status === "open") this.status = "done";
  }

  #endValue(to: number): void {
    this.#expected = "comma-or-end";
    if (this.#stack.length !== 1 || this.#key === undefined) return;
    const member = this.members.get(this.#key);
    if (member !== undefined) member.to = to;
    this.#key = undefined;
  }
}
