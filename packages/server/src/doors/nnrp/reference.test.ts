import { readFileSync } from "node:fs";
import { DropReason } from "@plenum/nnrp";
import { operationLevels, responsesEvents, writeDiagnostics, writeEnvelope } from "@plenum/profile";
import { expect, it } from "vitest";
import { errorTable } from "./errors.ts";
import { operations } from "./operations.ts";
import { classPriorities } from "./request.ts";

/** The page says what the code does, both ways. */

const page = readFileSync(new URL("../../../../../docs/reference/nnrp.md", import.meta.url), "utf8");

/** Rows of the table that begins with this column, as lists of cells. */
function rowsOf(column: string): string[][] {
  const [, rest = ""] = page.split(`\n| ${column} |`);
  const [table = ""] = rest.split("\n\n");
  const lines = table.split("\n").slice(2);
  return lines.map((line) => line.replace(/^\| | \|$/g, "").split(" | "));
}

it("operations, with their levels and scopes", () => {
  const known = Object.entries(operations).map(([name, { scope }]) => [
    `\`${name}\``,
    name === responsesEvents ? "–" : String(operationLevels[name as keyof typeof operationLevels]),
    scope,
  ]);
  expect(rowsOf("operation").map((row) => row.slice(0, 3))).toEqual(known);
});

it("members of nnrp", () => {
  const policy = {
    timeoutMs: 1,
    diagnostics: true,
    openaiChunk: true,
    authorization: "a",
    onDisconnect: "cancel",
    traceparent: "t",
    tracestate: "t",
  } as const;
  const { nnrp } = JSON.parse(writeEnvelope({ operation: "o", body: {}, policy }));
  expect(
    rowsOf("field")
      .flatMap(([names]) => names?.replaceAll("`", "").split(", ") ?? [])
      .sort(),
  ).toEqual(Object.keys(nnrp).sort());
});

it("diagnostics", () => {
  const all = {
    requestId: "r",
    responseId: "r",
    runtime: "r",
    transport: "t",
    queuePosition: 1,
    queueDelayMs: 1,
    ttftMs: 1,
    retryReason: "r",
    retryAfterMs: 1,
    cachedInputTokens: 1,
    flowPressure: "none",
    traceparent: "t",
  } as const;
  const named = rowsOf("diagnostics").flatMap(([names]) => names?.replaceAll("`", "").split(", ") ?? []);
  expect(named.sort()).toEqual(Object.keys(writeDiagnostics(all)).sort());
});

it("priorities of the classes", () => {
  const known = Object.entries(classPriorities).map(([name, priority]) => [`\`${name}\``, String(priority)]);
  expect(rowsOf("class")).toEqual(known);
});

it("errors, and ends that the protocol has words for", () => {
  const known = Object.entries(errorTable).map(([problem, row]) => {
    const native = "native" in row ? row.native : undefined;
    const instead =
      native === undefined
        ? ""
        : ` (${native === "cancelled" ? "`response.cancelled`" : `RESULT_DROP_REASON ${native.drop}`} instead)`;
    return [
      `\`${problem}\``,
      row.status === "backend" ? "the runtime's" : String(row.status),
      row.type,
      `${row.code}${instead}`,
    ];
  });
  expect(rowsOf("problem")).toEqual(known);
});

it("reasons of drops", () => {
  const { deadlineExpired, superseded, peerCancelled, transportClosed } = DropReason;
  expect([deadlineExpired, superseded, peerCancelled, transportClosed]).toEqual([1, 2, 3, 8]);
});
