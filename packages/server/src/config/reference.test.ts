import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { durationMs } from "./durations.ts";
import { configJsonSchema, configOptions } from "./known-options.ts";
import { nearMiss } from "./near-miss.ts";
import { overrideSources } from "./overrides.ts";

function reference(name: string): Promise<string> {
  return readFile(new URL(`../../../../docs/reference/${name}`, import.meta.url), "utf8");
}

test("the JSON Schema for editors is current (else run scripts/config-schema.mjs)", async () => {
  expect(JSON.parse(await reference("plenum.config.schema.json"))).toEqual(
    JSON.parse(JSON.stringify(configJsonSchema())),
  );
});

test("the page and the schema name the same options with the same defaults", async () => {
  const rows = [...(await reference("configuration.md")).matchAll(/^\| `([^`]+)` +\| (\S+) +\|/gm)];
  const documented = rows.map(([, path, value]) => [path, value]);
  const known = configOptions().map((option) => [
    option.path,
    option.default === undefined ? "–" : `\`${JSON.stringify(option.default)}\``,
  ]);
  expect(documented.toSorted()).toEqual(known.toSorted());
});

test("the page names every flag and variable", async () => {
  const page = await reference("configuration.md");
  for (const { flagName, variable } of overrideSources) {
    expect(page).toContain(`\`${flagName}\``);
    if (variable !== undefined) expect(page).toContain(`\`${variable}\``);
  }
});

test.each([
  ["30m", 1_800_000],
  ["1h30m", 5_400_000],
  ["1.5s", 1500],
  ["250ms", 250],
  ["-1", -1],
  [42, 42],
])("duration %s", (written, ms) => {
  expect(durationMs(written)).toBe(ms);
});

test.each([["soon"], ["30"], ["5m later"], ["-2"]])("not a duration: %s", (written) => {
  expect(() => durationMs(written)).toThrow(RangeError);
});

test.each([
  ["prot", "port"],
  ["logBytesTotal", "log_bytes_total"],
  ["cors_origin", "cors_origins"],
  ["xyzzy", undefined],
])("near miss of %s", (word, meant) => {
  expect(nearMiss(word, ["port", "log_bytes_total", "cors_origins"])).toBe(meant);
});
