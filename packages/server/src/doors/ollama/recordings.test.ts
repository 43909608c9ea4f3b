import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { callDoor } from "../shared/testing/call-door.ts";
import type { MemoryResponder } from "../shared/testing/memory-responder.ts";
import { createOllamaDoor } from "./index.ts";
import { setUpRecordedModels } from "./testing/models.ts";

interface Exchange {
  readonly name: string;
  readonly request: { readonly method: string; readonly path: string; readonly body: unknown };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: unknown;
    readonly lines?: readonly unknown[];
  };
}

const file = new URL("./__fixtures__/ollama-0.17.4.jsonl", import.meta.url);
const exchanges: Exchange[] = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

/** Where this door differs from the real Ollama on purpose. An entry that no longer differs fails. */
const agreedDifferences: Readonly<Record<string, string>> = {
  "chat-context-overflow": "a prompt that is too long is refused unless truncate is true",
  "chat-context-overflow-truncate-false": "the words are followed by the numbers",
  "chat-debug-render-only": "not offered",
  "chat-err-bad-model-name": "a name that can't exist is a model that is not found",
  "chat-err-content-number": "names the field in our words",
  "chat-err-content-parts": "names the field in our words",
  "chat-err-invalid-json": "tells the place in the body",
  "chat-err-messages-string": "names the field in our words",
  "chat-err-model-number": "names the field in our words",
  "chat-err-not-json": "tells the place in the body",
  "chat-err-stream-string": "names the field in our words",
  "chat-format-bad-schema": "the runtime that has to hold the schema checks it",
  "chat-images-nonvision": "images that the model can't see are refused",
  "chat-tools-bad-arguments-string": "names the field in our words",
  "chat-tools-unsupported": "tools that the model may but can't call are without effect",
  "chat-tools-unsupported-stream": "tools that the model may but can't call are without effect",
  "chat-unknown-role": "a role that no template knows is refused",
  "embed-chat-model": "a chat model makes no embeddings",
  "embed-long-truncate-false": "the words are followed by the numbers",
  "generate-bad-template": "a template of the request's own is refused",
  "generate-context": "token ids of an earlier answer are refused",
  "generate-debug-render-only": "not offered",
  "generate-err-prompt-array": "names the field in our words",
  "generate-images-nonvision": "images that the model can't see are refused",
  "generate-suffix-unsupported": "the model's own name instead of Ollama's long one",
  "generate-template": "a template of the request's own is refused",
  "pull-unknown-offline-nonstream": "the words name no address of a registry, and JSON has its charset",
  "show-embed-model": "tells the context length as a parameter",
  "status-get": "a path of Ollama's cloud",
};

/** Members of the recordings that this door leaves out everywhere. */
const absentMembers = new Set(["context", "tensors", "license", "system", "messages"]);
/** Members whose content is the model's own. */
const openMembers = new Set(["model_info"]);

/** Member names in order with the types of their values; arrays by their first member. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])];
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  const members = Object.entries(value).filter(([key]) => !absentMembers.has(key));
  return members.map(([key, member]) => [key, openMembers.has(key) ? typeof member : shapeOf(member)]);
}

/** Everything that the recording fixes: status, headers, shape; of errors the words. */
function outlineOf(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: unknown,
  lines?: readonly unknown[],
) {
  const outline = { status, type: headers["content-type"] ?? "", allow: headers["allow"] ?? "" };
  if (lines !== undefined) return { ...outline, lines: lines.map(shapeOf) };
  const isError = typeof body !== "object" || body === null || "error" in body;
  return { ...outline, body: isError ? body : shapeOf(body) };
}

function outlineOfAnswer(answer: MemoryResponder) {
  const { status, headers, text } = answer;
  const type = headers["content-type"] ?? "";
  if (type === "application/x-ndjson") {
    const lines = text.trim().split("\n");
    const ends = lines.length > 2 ? [lines[0], lines.at(-1)] : lines;
    return outlineOf(
      status,
      headers,
      undefined,
      ends.map((line) => JSON.parse(line ?? "")),
    );
  }
  return outlineOf(status, headers, type.includes("json") && text !== "" ? JSON.parse(text) : text);
}

describe("recorded exchanges with Ollama 0.17.4", () => {
  test.each(exchanges.map((exchange) => [exchange.name, exchange] as const))("%s", async (name, exchange) => {
    const { core } = setUpRecordedModels();
    const { method, path, body } = exchange.request;
    const answer = await callDoor(createOllamaDoor({ version: "1.2.3" }), core, {
      method,
      path,
      ...(body === null || body === "" ? {} : { body }),
    });
    expect(answer.text).not.toMatch(/"(context|tensors|license)":/);
    const { status, headers, body: recorded, lines } = exchange.response;
    const expected = outlineOf(status, headers, recorded, lines);
    if (name in agreedDifferences) expect(outlineOfAnswer(answer)).not.toEqual(expected);
    else expect(outlineOfAnswer(answer)).toEqual(expected);
  });

  test("every agreed difference is about a recorded exchange", () => {
    const names = new Set(exchanges.map(({ name }) => name));
    expect(Object.keys(agreedDifferences).filter((name) => !names.has(name))).toEqual([]);
  });
});
