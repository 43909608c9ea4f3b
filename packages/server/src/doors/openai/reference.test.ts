import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { chatFields } from "../shared/openai/chat/fields.ts";
import { completionFields } from "../shared/openai/completions/fields.ts";
import { embeddingTable } from "../shared/openai/embeddings/fields.ts";
import type { FieldTable } from "../shared/openai/fields.ts";
import { responsesExtraFields, responsesFields } from "../shared/openai/responses/fields.ts";
import { extraFields } from "../shared/openai/sampling.ts";
import { errorTable } from "./errors.ts";
import { createOpenaiDoor } from "./index.ts";

/** The page says what the code does, both ways. */

const page = readFileSync(new URL("../../../../../docs/reference/openai.md", import.meta.url), "utf8");

/** Rows of the table under a heading, as lists of cells. */
function rowsUnder(heading: string): string[][] {
  const section = page.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const lines = section.split("\n").filter((line) => line.startsWith("| "));
  return lines.slice(2).map((line) => line.replace(/^\| | \|$/g, "").split(/ \| ?/));
}

function rowsOf(table: FieldTable): string[][] {
  return Object.entries(table).map(([name, { effect, note }]) => [`\`${name}\``, effect, note ?? ""]);
}

it.each([
  ["POST /v1/chat/completions", chatFields],
  ["POST /v1/responses", responsesFields],
  ["POST /v1/embeddings", embeddingTable],
  ["POST /v1/completions", completionFields],
  ["Extras", extraFields],
] as const)("fields of %s", (heading, table) => {
  expect(rowsUnder(heading).map(([name, effect, note]) => [name, effect, note ?? ""])).toEqual(rowsOf(table));
});

it("fields that Responses takes beyond its own", () => {
  const named = /Also taken here:\n([^.]+)\./.exec(page)?.[1] ?? "";
  const own = Object.keys(responsesExtraFields).filter((name) => !Object.hasOwn(extraFields, name));
  expect([...named.matchAll(/`(\w+)`/g)].map((match) => match[1])).toEqual(own);
});

it("operations", () => {
  const operations = createOpenaiDoor().operations.map(({ method, path, name, scope }) => [
    method,
    `\`${path}\``,
    `\`${name}\``,
    scope,
  ]);
  expect(rowsUnder("Operations")).toEqual(operations);
});

it("errors", () => {
  const errors = Object.entries(errorTable).map(([code, row]) => [
    `\`${code}\``,
    row.status === "backend" ? "the runtime's" : String(row.status),
    row.type,
    row.code ?? "null",
  ]);
  expect(rowsUnder("Errors")).toEqual(errors);
});
