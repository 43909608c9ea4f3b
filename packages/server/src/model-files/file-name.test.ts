import { join } from "node:path";
import { expect, test } from "vitest";
import { insideOf, safeGgufName, safeName } from "./file-name.ts";

test.each([
  ["model.gguf", "model.gguf"],
  ["../../etc/passwd", "passwd"],
  ["..\\..\\windows\\system.gguf", "system.gguf"],
  ["..", "model"],
  ["", "model"],
  [".hidden.gguf", "hidden.gguf"],
  ["-rf.gguf", "rf.gguf"],
  ["a b\0c\n.gguf", "a_b_c_.gguf"],
  ["模型.gguf", "gguf"],
  [`${"x".repeat(500)}.gguf`, `${"x".repeat(195)}.gguf`],
])("%j is safe as %s", (written, safe) => {
  expect(safeName(written)).toBe(safe);
  expect(insideOf("/models", safeGgufName(written))).toMatch(/^\/models\/[^/]+\.gguf$/);
});

test("never outside of the folder", () => {
  for (const name of ["..", "../x", ".", "a/../../x"]) expect(() => insideOf("/models", name)).toThrow(RangeError);
  expect(insideOf("/models", "/etc/passwd")).toBe(join("/models", "etc/passwd"));
});
