import { describe, expect, it } from "vitest";
import { answerError, lineError } from "./errors.ts";
import { type RecordedError, recordedErrors } from "./testing/fixtures.ts";

const model = { name: "m:1b", limits: { parallel: 1, contextTokens: 256 } };

function errorOf({ status, body }: Pick<RecordedError, "status" | "body">) {
  const text = typeof body === "string" ? body : JSON.stringify(body ?? "");
  return answerError({ status, headers: {}, body: typeof body === "string" ? undefined : body, text }, model);
}

/** Every recorded answer that is an error. */
const expected: Readonly<Record<string, object>> = {
  "chat-err-unknown-model": { code: "model-not-found" },
  "embed-unknown-model": { code: "model-not-found" },
  "chat-err-busy-queue-full": { code: "overloaded" },
  "chat-tools-unsupported": { code: "unsupported-capability", details: { model: "m:1b", capability: "tools" } },
  "chat-think-unsupported": { code: "unsupported-capability", details: { capability: "reasoning" } },
  "generate-suffix-unsupported": { code: "unsupported-capability", details: { capability: "insert" } },
  "chat-err-embed-model": { code: "unsupported-capability", details: { capability: "chat" } },
  "generate-err-embed-model": { code: "unsupported-capability", details: { capability: "completion" } },
  "chat-context-overflow-truncate-false": { code: "context-length-exceeded", details: { limit: 256, param: "input" } },
  "embed-long-truncate-false": { code: "context-length-exceeded", details: { limit: 256 } },
  "chat-format-bad-schema": { code: "invalid-request", details: { param: "output.format" } },
  "chat-format-bad-string": { code: "invalid-request", details: { param: "output.format" } },
  "chat-images-bad-base64": { code: "invalid-request", details: { param: "input" } },
  "chat-err-option-type": { code: "invalid-request", details: { param: "runtime_options.ollama.temperature" } },
  "chat-tools-bad-arguments-string": { code: "backend-refused", details: { backendStatus: 400 } },
  "chat-think-bad-value": { code: "backend-refused", details: { backendStatus: 400 } },
  "embed-token-array": { code: "backend-refused" },
  "host-header-foreign": { code: "backend-error" },
  "unknown-path": { code: "backend-refused", details: { backendStatus: 404 } },
  "chat-err-get": { code: "backend-error" },
};

describe("recorded errors", () => {
  it.each(recordedErrors().map((recorded) => [recorded.name, recorded] as const))("%s", (name, recorded) => {
    const error = errorOf(recorded);
    expect(error).toMatchObject(expected[name] ?? { code: "not expected" });
    expect(error.message).toMatch(/[.!?…]$/);
    expect(error.message).not.toContain("registry");
  });

  it("are all expected", () => {
    expect(recordedErrors().map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(expected)));
  });
});

describe("others", () => {
  it.each([
    [
      "memory",
      500,
      { error: "model requires more system memory (9.1 GiB) than is available (3.2 GiB)" },
      "insufficient-memory",
    ],
    ["a runner that died", 500, { error: "llama runner process has terminated: exit status 2" }, "backend-error"],
    ["a proxy's page", 502, "<html><body>Bad Gateway</body></html>", "backend-error"],
    ["our key", 401, { error: "unauthorized" }, "backend-error"],
    ["too many", 429, { error: "slow down" }, "overloaded"],
    ["an empty body", 500, "", "backend-error"],
  ])("%s", (_name, status, body, code) => {
    expect(errorOf({ status, body })).toMatchObject({ code });
  });

  it.each([
    ["boom", "backend-error"],
    ["the input length exceeds the context length", "context-length-exceeded"],
    ["model requires more system memory", "insufficient-memory"],
  ])("an error line: %s", (message, code) => {
    expect(lineError({ error: message }, model)).toMatchObject({ code });
  });

  it("tells no address", () => {
    const error = lineError({ error: 'Post "http://10.1.2.3:43211/completion": EOF' }, model);
    expect(error.message).not.toMatch(/10\.1\.2\.3|http/);
  });
});
