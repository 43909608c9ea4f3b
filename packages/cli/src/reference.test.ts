import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { exitCodes } from "./exit-codes.ts";
import { createProgram, runProgram } from "./program.ts";
import { fakeSurroundings } from "./testing/fake-surroundings.ts";

const page = readFile(new URL("../../../docs/reference/cli.md", import.meta.url), "utf8");

/** Commands that do something, under their whole names. */
function leaves(command: Command, name = "plenum"): readonly { readonly usage: string; readonly command: Command }[] {
  if (command.commands.length > 0) return command.commands.flatMap((sub) => leaves(sub, `${name} ${sub.name()}`));
  const words = command.registeredArguments.map((argument) => {
    const word = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? ` <${word}>` : ` [${word}]`;
  });
  return [{ usage: `${name}${words.join("")}`, command }];
}

const commands = leaves(createProgram(fakeSurroundings(), () => undefined));

async function section(title: string): Promise<string> {
  const [, text = ""] = (await page).split(`\n## ${title}\n`);
  return text.split("\n## ")[0] ?? "";
}

test("the page has a section for each command with its arguments, and for no other", async () => {
  const documented = [...(await page).matchAll(/^## `(plenum [^`]+)`$/gm)].map(([, usage]) => usage);
  expect(documented.toSorted()).toEqual(commands.map(({ usage }) => usage).toSorted());
});

test.each(commands)(
  "the page and the code name the same flags of $usage with the same defaults",
  async ({ usage, command }) => {
    const rows = [...(await section(`\`${usage}\``)).matchAll(/^\| `(--[^`]+)` +\| ([^|]+?) +\|/gm)];
    const documented = rows.map(([, flags, value]) => [flags, value]);
    const known = command.options.map(({ flags, defaultValue, negate }) => [
      flags,
      defaultValue === undefined || negate ? "–" : `\`${defaultValue}\``,
    ]);
    expect(documented.toSorted()).toEqual(known.toSorted());
  },
);

/** Services, a conversation, and a script: nothing that JSON could say better. */
const withoutJson: readonly string[] = [
  "plenum serve",
  "plenum bridge <url>",
  "plenum chat <model>",
  "plenum completion <shell>",
];

test.each(commands)("$usage has examples in its help, and JSON where it says something", async ({ usage, command }) => {
  const around = fakeSurroundings();
  const words = usage.split(" ").filter((word) => /^[a-z-]+$/.test(word) && word !== "plenum");
  expect(await runProgram([...words, "--help"], around)).toBe(exitCodes.ok);
  expect(around.written.output).toContain("\nExamples:\n  plenum ");
  expect(command.options.some(({ long }) => long === "--json")).toBe(!withoutJson.includes(usage));
});

test("the page and the code name the same exit codes", async () => {
  const rows = [...(await section("Exit codes")).matchAll(/^\| (\d+) +\|/gm)];
  expect(rows.map(([, code]) => Number(code))).toEqual(Object.values(exitCodes).toSorted((a, b) => a - b));
});
