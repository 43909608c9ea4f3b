import { describe, expect, it } from "vitest";
import { createCapabilityDocument, readCapabilityDocument, refuseUnadvertised } from "./capabilities.ts";

const chat = "chat.completions.create";
const document = createCapabilityDocument({
  compatibility_levels: [1],
  operations: [{ name: chat, streaming: true, non_streaming: true, tool_calls: true, cancellation: true }],
  models: [{ id: "m", owned_by: "adapter" }],
  extensions: [{ name: "responses.events", critical: false, description: "Replays a response." }],
});

it("reads back what it makes", () => {
  expect(readCapabilityDocument(JSON.parse(JSON.stringify(document)))).toEqual({ ok: true, document });
});

it("tells of services by ids, so many and no other texts", () => {
  const services = [...Array.from({ length: 40 }, (_, index) => `s${index}`), 7, "a b", "x".repeat(65)];
  const result = readCapabilityDocument({ ...document, services: services.toReversed() });
  expect(result.ok && result.document.services).toEqual(services.slice(8, 40).toReversed());
  expect(readCapabilityDocument({ ...document, services: "s1" })).toEqual({ ok: true, document });
});

it("reads the shorter document of the profile's text", () => {
  const result = readCapabilityDocument({
    profile: "openai-compatible",
    schema_version: "openai-compatible/1",
    compatibility_levels: [1],
    operations: [{ name: chat, streaming: true, non_streaming: false, tool_calls: false }],
    other: 1,
  });
  expect(result).toMatchObject({
    ok: true,
    document: {
      operations: [{ name: chat, streaming: true, non_streaming: false, tool_calls: false, cancellation: true }],
      models: [],
      extensions: [],
    },
  });
});

it.each<[unknown, string | undefined]>([
  ["x", undefined],
  [{ ...document, profile: "other" }, "profile"],
  [{ ...document, schema_version: "openai-compatible/2" }, "schema_version"],
  [{ ...document, compatibility_levels: "1" }, "compatibility_levels"],
  [{ ...document, operations: undefined }, "operations"],
  [{ ...document, operations: [{}] }, "operations[0].name"],
  [{ ...document, models: {} }, "models"],
  [{ ...document, models: [{ id: "m" }, { id: 7 }] }, "models[1].id"],
  [{ ...document, extensions: [null] }, "extensions[0].name"],
])("names the wrong member: %#", (value, field) => {
  const result = readCapabilityDocument(value);
  if (result.ok) throw new Error("was taken");
  expect(result.field).toBe(field);
});

describe("refuses before sending", () => {
  const only = (parts: object) =>
    createCapabilityDocument({
      ...document,
      operations: [
        { name: chat, streaming: true, non_streaming: true, tool_calls: true, cancellation: true, ...parts },
      ],
    });

  it.each([
    ["an operation", document, "responses.create", {}, "operation"],
    ["streaming", only({ streaming: false }), chat, { stream: true }, "stream"],
    ["whole answers", only({ non_streaming: false }), chat, {}, "stream"],
    ["tools", only({ tool_calls: false }), chat, { tools: [{}] }, "tools"],
  ])("%s", (_name, offered, operation, body, param) => {
    expect(refuseUnadvertised(offered, operation, body)).toMatchObject({ code: "unsupported_operation", param });
  });

  it.each([
    [document, chat, { stream: true, tools: [{}] }],
    [document, "responses.events", { id: "resp_1" }],
    [only({ tool_calls: false }), chat, { tools: [] }],
  ])("not what is offered: %#", (offered, operation, body) => {
    expect(refuseUnadvertised(offered, operation, body)).toBeUndefined();
  });
});
