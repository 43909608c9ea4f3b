import { readFile } from "node:fs/promises";
import { problemCodes, problems } from "@plenum/core";
import { expect, test } from "vitest";
import { errorRenderings } from "./errors.ts";
import { createOllamaDoor } from "./index.ts";
import { optionRules } from "./options.ts";

const page = readFile(new URL("../../../../../docs/reference/ollama.md", import.meta.url), "utf8");

async function section(title: string): Promise<string> {
  const [, text = ""] = (await page).split(`\n## ${title}\n`);
  return text.split("\n## ")[0] ?? "";
}

test("the page and the code name the same options with the same effects", async () => {
  const rows = [...(await section("Options")).matchAll(/^\| `(\w+)` +\| (\w+) +\| (\w+) +\|/gm)];
  const documented = rows.map(([, name, type, effect]) => [name, type, effect]);
  const known = Object.entries(optionRules).map(([name, { type, effect }]) => [name, type, effect]);
  expect(documented).toEqual(known);
});

test("the page and the code name the same problems with the same statuses", async () => {
  const rows = [...(await section("Errors")).matchAll(/^\| `([\w-]+)` +\| (\d+|the runtime's own)/gm)];
  const documented = rows.map(([, code, status]) => [code, status]);
  const known = problemCodes.map((code) => {
    const { status } = errorRenderings[code];
    return [code, status === "backend" ? "the runtime's own" : String(status)];
  });
  expect(documented).toEqual(known);
});

test("the page and the code name the same endpoints with the same scopes", async () => {
  const rows = [...(await section("Endpoints")).matchAll(/^\| `(\w+) (\S+)` +\| (\S+) +\|/gm)];
  const documented = rows.map(([, method, path, scope]) => `${method} ${path} ${scope}`);
  const operations = createOllamaDoor({ version: "1.2.3" }).operations.filter(({ method }) => method !== "HEAD");
  const known = operations.map(({ method, path, scope }) => `${method} ${path} ${scope ?? "–"}`);
  expect(documented.toSorted()).toEqual(known.toSorted());
});

test("statuses follow the table of problems but for the ones that Ollama has its own for", () => {
  const own = problemCodes.filter((code) => errorRenderings[code].status !== problems[code].status);
  expect(own).toEqual([
    "unsupported-capability",
    "invalid-output",
    "insufficient-memory",
    "insufficient-storage",
    "backend-refused",
    "backend-error",
  ]);
});
