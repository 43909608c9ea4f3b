import { readFileSync } from "node:fs";

/** Recorded traffic and vectors; see `__fixtures__/README.md`. */
export interface Recording {
  readonly scenario: string;
  readonly transport: string;
  readonly frames: readonly (readonly [direction: "c2s" | "s2c", message: string, hex: string])[];
}

export interface Vector {
  readonly name: string;
  readonly kind: string;
  readonly hex: string;
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../__fixtures__/${name}`, import.meta.url), "utf8"));

export const captures = read("captures.json") as readonly Recording[];
export const packets = read("packets.json") as readonly Recording[];
export const vectors = read("vectors.json") as readonly Vector[];
export const fromHex = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
