import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { bodyRecords } from "./body-regions.ts";
import { messages } from "./messages.ts";
import type { RecordLayout } from "./record.ts";
import * as registries from "./registries.ts";
import { capabilityTokens } from "./registries.ts";

const folder = new URL("../../contracts/", import.meta.url);
const file = "nnrp-1-preview4-sdk-api.extract.json";
const bytes = readFileSync(new URL(file, folder));
const contract = JSON.parse(bytes.toString("utf8")) as {
  readonly wireLayouts: Readonly<
    Record<string, { size: number; fields: { name: string; type: string; offset: number; constant?: number }[] }>
  >;
  readonly enums: Readonly<Record<string, { values: Record<string, number> }>>;
};
const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

test("the contract is the one that its README names", () => {
  const readme = readFileSync(new URL("README.md", folder), "utf8");
  expect(readme).toContain(`\`${createHash("sha256").update(bytes).digest("hex")}\``);
});

describe("records of bodies", () => {
  test("all are there", () => expect(Object.keys(bodyRecords)).toEqual(Object.keys(contract.wireLayouts)));

  test.each(Object.entries(contract.wireLayouts))("%s", (name, { size, fields }) => {
    const layout = bodyRecords[name as keyof typeof bodyRecords] as RecordLayout;
    expect(layout.size).toBe(size);
    const reserved = fields.filter((each) => each.constant === 0 && each.name.startsWith("reserved"));
    const named = fields.filter((each) => !reserved.includes(each));
    expect(layout.entries.map(([key, { at, width }]) => [key, at, width])).toEqual(
      named.map((each) => [camel(each.name), each.offset, each.type]),
    );
    const bytesOf: Readonly<Record<string, number>> = { u8: 1, u16: 2, u32: 4, u64: 8 };
    expect(layout.reserved).toEqual(
      reserved.flatMap(({ offset, type }) => Array.from({ length: bytesOf[type] ?? 0 }, (_, i) => offset + i)),
    );
  });
});

/** The contract has this one twice: as values and as bits. */
const names = Object.entries(contract.enums).filter(([name]) => name !== "PayloadKindBitmap");

test.each(names)("the values of %s", (name, { values }) => {
  const registry = (registries as Readonly<Record<string, unknown>>)[name];
  expect(registry).toEqual(Object.fromEntries(Object.entries(values).map(([key, value]) => [camel(key), value])));
});

test("capability tokens are sorted", () => expect([...capabilityTokens].sort()).toEqual([...capabilityTokens]));

test("every message has its own number, and its fields lie within its metadata without touching", () => {
  const numbers = Object.values(messages).map(({ number }) => number);
  expect(new Set(numbers).size).toBe(numbers.length);
  const bytesOf = { u8: 1, u16: 2, i16: 2, u32: 4, u64: 8 } as const;
  for (const [name, { metadata }] of Object.entries(messages)) {
    const covered = metadata.entries.reduce((sum, [, { width }]) => sum + bytesOf[width], 0);
    expect(covered + metadata.reserved.length, name).toBe(metadata.size);
    for (const [field, { at, width }] of metadata.entries)
      expect(at + bytesOf[width], field).toBeLessThanOrEqual(metadata.size);
  }
});
