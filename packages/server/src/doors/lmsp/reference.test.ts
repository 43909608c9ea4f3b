import { readFileSync } from "node:fs";
import type { ResponseEventType } from "@plenum/core";
import { describe, expect, it } from "vitest";
import { responseSchema } from "./schema.ts";
import { createTestDoor } from "./testing/create-test-door.ts";

const page = readFileSync(new URL("../../../../../docs/reference/lmsp.md", import.meta.url), "utf8");

/** First cells of a section's table, code marks taken away. */
function rowsOf(heading: string): string[][] {
  const section = page.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `"));
  return rows.map((line) => line.split(" | ").map((cell) => cell.replaceAll(/^\| |`/g, "").trim()));
}

describe("the reference page and the code say the same", () => {
  it("operations and their scopes", () => {
    const door = createTestDoor();
    const real = door.operations.map(({ name, method, path, scope }) => [name, `${method} ${path}`, scope ?? "none"]);
    expect(rowsOf("Operations").map((row) => row.slice(0, 3))).toEqual(real);
  });

  it("fields of a request", () => {
    expect(
      rowsOf("A request")
        .map(([field]) => field)
        .sort(),
    ).toEqual(Object.keys(responseSchema.shape).sort());
  });

  it("events", () => {
    const types: Record<ResponseEventType, true> = {
      "response.created": true,
      "response.in_progress": true,
      "response.restarted": true,
      "response.output_item.added": true,
      "response.output_text.delta": true,
      "response.output_text.done": true,
      "response.refusal.delta": true,
      "response.refusal.done": true,
      "response.reasoning_text.delta": true,
      "response.reasoning_text.done": true,
      "response.function_call_arguments.delta": true,
      "response.function_call_arguments.done": true,
      "response.output_item.done": true,
      "response.completed": true,
      "response.incomplete": true,
      "response.failed": true,
      "response.cancelled": true,
    };
    const written = rowsOf("Events").flatMap(([names]) => names?.split(", ") ?? []);
    expect(written.sort()).toEqual(Object.keys(types).sort());
  });
});
