import { readdirSync, readFileSync } from "node:fs";
import type { JsonObject } from "../json.ts";

const folder = new URL("./__fixtures__/", import.meta.url);

function read<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(path, folder), "utf8")) as T;
}

/** What one side sent next; texts are the JSON as it was on the wire. */
export type ExchangeStep =
  | { readonly partial: string }
  | { readonly result: string; readonly status: number }
  | { readonly drop: number; readonly diagnostic: string }
  | { readonly cancel: number };

/** A recorded exchange of two real peers. */
export interface Exchange {
  readonly scenario: string;
  readonly request: string;
  readonly steps: readonly ExchangeStep[];
}

export function exchange(scenario: string): Exchange {
  return read(`exchanges/${scenario}.json`);
}

export const exchanges: readonly Exchange[] = readdirSync(new URL("exchanges/", folder)).map((file) =>
  read(`exchanges/${file}`),
);

/** A recipe of the public conformance suite. */
export interface Recipe {
  readonly id: string;
  readonly operation: string;
  readonly request: { readonly body: Record<string, unknown>; readonly nnrp?: Record<string, unknown> };
  readonly expect: { readonly terminal: string; readonly events: readonly Record<string, unknown>[] };
}

export const recipes: readonly Recipe[] = readdirSync(new URL("recipes/", folder)).map((file) =>
  read(`recipes/${file}`),
);

interface FieldRule {
  readonly type?: string;
  readonly const?: string;
  readonly minimum?: number;
  readonly minLength?: number;
}

/** The profile's contract, as far as tests read it. */
export const contract: {
  readonly contract: string;
  readonly toolCallEvents: Readonly<
    Record<string, { readonly required: readonly string[]; readonly fields: Readonly<Record<string, FieldRule>> }>
  >;
} = read("openai-compatible-1.json");

/** A streamed chat of a real server. */
export interface RecordedStream {
  readonly request: Record<string, unknown> & { readonly model: string };
  readonly chunks: readonly JsonObject[];
}

export function recordedStream(name: string): RecordedStream {
  return read(`streams/${name}.json`);
}

export const streamNames: readonly string[] = readdirSync(new URL("streams/", folder)).map((file) =>
  file.replace(".json", ""),
);

/** A streamed response of a real server. */
export interface RecordedResponse {
  readonly request: Record<string, unknown> & { readonly model: string };
  readonly events: readonly JsonObject[];
}

export function recordedResponse(name: string): RecordedResponse {
  return read(`responses/${name}.json`);
}
