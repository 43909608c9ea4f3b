import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RequestEnvelope, readEnvelope, writeEnvelope } from "./envelope.ts";
import { statusOfError } from "./errors.ts";
import { maxJsonLevels } from "./json.ts";
import { exchanges, recipes } from "./testing/fixtures.ts";

const chat = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const right = { schema_version: "openai-compatible/1", operation: "chat.completions.create", body: chat };

function nested(levels: number): string {
  return `{"schema_version":"openai-compatible/1","body":${"[".repeat(levels)}${"]".repeat(levels)}}`;
}

describe("what is wrong is named", () => {
  it.each<[string, unknown, string, number, string | undefined]>([
    ["not UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), "invalid_submit_body", 400, undefined],
    ["empty", "", "invalid_submit_body", 400, undefined],
    ["not JSON", "{", "invalid_submit_body", 400, undefined],
    ["a list", "[]", "invalid_submit_body", 400, undefined],
    ["null", "null", "invalid_submit_body", 400, undefined],
    ["10,000 levels deep", nested(10_000), "invalid_submit_body", 400, undefined],
    ["one level too deep", nested(maxJsonLevels), "invalid_submit_body", 400, undefined],
    ["no schema_version", { ...right, schema_version: undefined }, "unsupported_schema_version", 400, "schema_version"],
    [
      "another version",
      { ...right, schema_version: "openai-compatible/2" },
      "unsupported_schema_version",
      400,
      "schema_version",
    ],
    ["no operation", { ...right, operation: undefined }, "unsupported_operation", 400, "operation"],
    ["an unknown operation", { ...right, operation: "images.generate" }, "unsupported_operation", 400, "operation"],
    [
      "an operation named like a member of objects",
      { ...right, operation: "constructor" },
      "unsupported_operation",
      400,
      "operation",
    ],
    ["request_id a number", { ...right, request_id: 7 }, "invalid_request_id", 400, "request_id"],
    ["request_id empty", { ...right, request_id: "" }, "invalid_request_id", 400, "request_id"],
    ["request_id too long", { ...right, request_id: "x".repeat(257) }, "invalid_request_id", 400, "request_id"],
    ["no body", { ...right, body: undefined }, "invalid_body", 400, "body"],
    ["body a list", { ...right, body: [] }, "invalid_body", 400, "body"],
    ["no model", { ...right, body: { ...chat, model: undefined } }, "missing_model", 400, "model"],
    ["model empty", { ...right, body: { ...chat, model: "" } }, "missing_model", 400, "model"],
    ["no messages", { ...right, body: { model: "m" } }, "missing_messages", 400, "messages"],
    ["messages empty", { ...right, body: { model: "m", messages: [] } }, "missing_messages", 400, "messages"],
    ["messages a text", { ...right, body: { model: "m", messages: "Hi" } }, "missing_messages", 400, "messages"],
    [
      "response without model",
      { ...right, operation: "responses.create", body: { input: "Hi" } },
      "missing_model",
      400,
      "model",
    ],
    ["nnrp a text", { ...right, nnrp: "x" }, "invalid_nnrp_policy", 400, "nnrp"],
    ["nnrp null", { ...right, nnrp: null }, "invalid_nnrp_policy", 400, "nnrp"],
    ["timeout a text", { ...right, nnrp: { timeout_ms: "5" } }, "invalid_nnrp_policy", 400, "nnrp.timeout_ms"],
    ["timeout negative", { ...right, nnrp: { timeout_ms: -1 } }, "invalid_nnrp_policy", 400, "nnrp.timeout_ms"],
    ["timeout in halves", { ...right, nnrp: { timeout_ms: 0.5 } }, "invalid_nnrp_policy", 400, "nnrp.timeout_ms"],
    ["diagnostics a number", { ...right, nnrp: { diagnostics: 1 } }, "invalid_nnrp_policy", 400, "nnrp.diagnostics"],
    [
      "openai_chunk a text",
      { ...right, nnrp: { openai_chunk: "yes" } },
      "invalid_nnrp_policy",
      400,
      "nnrp.openai_chunk",
    ],
    [
      "authorization empty",
      { ...right, nnrp: { authorization: "" } },
      "invalid_nnrp_policy",
      400,
      "nnrp.authorization",
    ],
    [
      "on_disconnect unknown",
      { ...right, nnrp: { on_disconnect: "stay" } },
      "invalid_nnrp_policy",
      400,
      "nnrp.on_disconnect",
    ],
  ])("%s", (_name, input, code, status, param) => {
    const text = typeof input === "string" || input instanceof Uint8Array ? input : JSON.stringify(input);
    const result = readEnvelope(text);
    if (result.ok) throw new Error("was taken");
    expect(result.error).toMatchObject({ type: "invalid_request_error", code });
    expect(result.error.param).toBe(param);
    expect(result.error.message).not.toBe("");
    expect(statusOfError(result.error)).toBe(status);
  });

  it("and the request's id stays known, to answer with", () => {
    const result = readEnvelope(JSON.stringify({ ...right, request_id: "req_1", operation: "none" }));
    expect(result).toMatchObject({ ok: false, requestId: "req_1" });
  });

  it("without a word of the request", () => {
    const result = readEnvelope(JSON.stringify({ ...right, operation: "secret", nnrp: { authorization: 4 } }));
    expect(JSON.stringify(result)).not.toContain("secret");
  });
});

describe("what is right is taken", () => {
  it("reads every recorded request but those made to fail", () => {
    for (const { scenario, request } of exchanges) {
      const result = readEnvelope(request);
      if (result.ok) expect(JSON.parse(writeEnvelope(result.envelope))).toEqual(JSON.parse(request));
      else expect(["error-body", "error-operation"]).toContain(scenario);
    }
  });

  it("judges the recipes as they expect", () => {
    const level1 = new Set(["chat.completions.create"]);
    for (const { id, operation, request, expect: expected } of recipes) {
      const result = readEnvelope(
        JSON.stringify({ schema_version: right.schema_version, operation, ...request }),
        level1,
      );
      const refused = id.endsWith("invalid-body") || id.endsWith("unsupported-operation");
      expect(result.ok, id).toBe(!refused);
      if (!result.ok) expect({ error: result.error }).toMatchObject(expected.events[0]?.["fields"] as object);
    }
  });

  it("ignores members that it doesn't know", () => {
    const result = readEnvelope(JSON.stringify({ ...right, more: 1, nnrp: { cancel_after_events: "x", other: {} } }));
    expect(result).toEqual({
      ok: true,
      envelope: { operation: "chat.completions.create", body: chat, policy: {} },
    });
  });

  it("reads a timeout of 0 as none", () => {
    const result = readEnvelope(JSON.stringify({ ...right, nnrp: { timeout_ms: 0 } }));
    expect(result).toMatchObject({ ok: true, envelope: { policy: {} } });
    expect(result.ok && result.envelope.policy).not.toHaveProperty("timeoutMs");
  });

  it("takes operations that a service has beside the profile's", () => {
    const text = JSON.stringify({ ...right, operation: "responses.events", body: { id: "resp_1", after: 3 } });
    expect(readEnvelope(text).ok).toBe(false);
    expect(readEnvelope(text, new Set(["responses.events"])).ok).toBe(true);
  });

  it("reads back what it writes", () => {
    const text = fc.string({ minLength: 1, maxLength: 256, unit: "binary" });
    const policy = fc.record(
      {
        timeoutMs: fc.integer({ min: 1 }),
        diagnostics: fc.constant(true as const),
        openaiChunk: fc.constant(true as const),
        authorization: text,
        onDisconnect: fc.constantFrom("cancel" as const, "continue" as const),
      },
      { requiredKeys: [] },
    );
    const body = fc.dictionary(
      fc.string().filter((name) => name !== "__proto__"),
      fc.jsonValue({ maxDepth: 3 }),
    );
    const envelope: fc.Arbitrary<RequestEnvelope> = fc.oneof(
      fc.record({ operation: fc.constant("models.list"), body, policy, requestId: text }),
      fc.record({
        operation: fc.constant("chat.completions.create"),
        body: body.map((members) => ({ ...members, ...chat })),
        policy,
      }),
    );
    fc.assert(
      fc.property(envelope, (written) => {
        const result = readEnvelope(new TextEncoder().encode(writeEnvelope(written)));
        expect(result).toEqual({ ok: true, envelope: JSON.parse(JSON.stringify(written)) });
      }),
    );
  });
});

it("never throws", () => {
  const shaped = fc.record(
    {
      schema_version: fc.oneof(fc.constant("openai-compatible/1"), fc.jsonValue()),
      operation: fc.oneof(fc.constantFrom("models.list", "chat.completions.create", "__proto__"), fc.jsonValue()),
      request_id: fc.jsonValue(),
      body: fc.jsonValue(),
      nnrp: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  const input = fc.oneof(
    fc.uint8Array(),
    fc.json(),
    shaped.map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(input, (bytes) => {
      const result = readEnvelope(bytes);
      if (!result.ok) expect(result.error.code).toMatch(/^[a-z_]+$/);
    }),
    { numRuns: 1000 },
  );
});
