/** A JSON value of unknown shape, looked into without fear. */
export class Value {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  get raw(): unknown {
    return this.#value;
  }

  at(...path: readonly (string | number)[]): Value {
    let value = this.#value;
    for (const step of path) {
      value = typeof value === "object" && value !== null ? Reflect.get(value, step) : undefined;
    }
    return new Value(value);
  }

  get text(): string | undefined {
    return typeof this.#value === "string" ? this.#value : undefined;
  }

  get number(): number | undefined {
    return typeof this.#value === "number" ? this.#value : undefined;
  }

  get list(): readonly Value[] {
    return Array.isArray(this.#value) ? this.#value.map((each) => new Value(each)) : [];
  }

  get isList(): boolean {
    return Array.isArray(this.#value);
  }

  get isObject(): boolean {
    return typeof this.#value === "object" && this.#value !== null && !Array.isArray(this.#value);
  }

  get json(): string {
    return JSON.stringify(this.#value) ?? "nothing";
  }
}

export function asValue(raw: unknown): Value {
  return new Value(raw);
}

/** Values of JSON Lines; a line that is no JSON is nothing. */
export function linesOf(text: string): readonly Value[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => {
      try {
        return asValue(JSON.parse(line));
      } catch {
        return asValue(undefined);
      }
    });
}
