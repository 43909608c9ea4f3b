import { readFileSync } from "node:fs";

export interface Line {
  readonly json: unknown;
}

interface Recorded {
  readonly response: { readonly status: number; readonly body?: unknown; readonly lines?: readonly Line[] };
}

export interface RecordedError {
  readonly name: string;
  readonly status: number;
  readonly body: unknown;
}

/** A recorded exchange by its name. */
export function fixture(name: string): Recorded {
  return read(name);
}

export function recordedErrors(): readonly RecordedError[] {
  return read("errors");
}

function read<Value>(name: string): Value {
  return JSON.parse(readFileSync(new URL(`../__fixtures__/ollama-0.17.4-${name}.json`, import.meta.url), "utf8"));
}
