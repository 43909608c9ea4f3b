import { CoreError } from "@plenum/core";
import { describe, expect, test } from "vitest";
import { keyOfSource, parsePullSource } from "./pull-source.ts";

const hash = "a".repeat(64);

test.each([
  ["starter", { kind: "starter" }],
  ["hf:acme/tiny-GGUF", { kind: "hub", owner: "acme", repository: "tiny-GGUF" }],
  ["hf:acme/tiny-GGUF:Q4_K_M", { kind: "hub", owner: "acme", repository: "tiny-GGUF", variant: "Q4_K_M" }],
  ["hf:acme/tiny:sub/m.gguf", { kind: "hub", owner: "acme", repository: "tiny", variant: "sub/m.gguf" }],
  ["hf.co/acme/tiny:Q8_0", { kind: "hub", owner: "acme", repository: "tiny", variant: "Q8_0" }],
  ["ollama:llama3.2:1b", { kind: "ollama", name: "llama3.2:1b" }],
  ["https://host/m.gguf?download=1", { kind: "url", url: "https://host/m.gguf?download=1", sha256: [] }],
  [`https://host/m.gguf#sha256=${hash}`, { kind: "url", url: "https://host/m.gguf", sha256: [hash] }],
  ["http://127.0.0.1:80/m.gguf", { kind: "url", url: "http://127.0.0.1/m.gguf", sha256: [] }],
  ["/models/m.gguf", { kind: "local", path: "/models/m.gguf" }],
  ["file:///models/my%20m.gguf", { kind: "local", path: "/models/my m.gguf" }],
  [" smollm2:135m ", { kind: "name", name: "smollm2:135m" }],
])("%s", (source, expected) => {
  expect(parsePullSource(source)).toEqual(expected);
});

describe("is refused, naming the field", () => {
  test.each([
    [""],
    ["hf:acme"],
    ["hf:acme/../x"],
    ["hf:acme/a..b"],
    ["hf:acme/tiny/more"],
    ["hf:acme/tiny:"],
    ["hf:acme/tiny:../../etc/passwd"],
    ["hf:ac me/tiny"],
    ["ollama:"],
    ["ollama:../x"],
    ["http://example.com/m.gguf"],
    ["https://user:key@host/m.gguf"],
    ["https://host/m.gguf#sha256=abc"],
    ["https://host/m.gguf#part"],
    ["https://[/m.gguf"],
    ["./m.gguf"],
    ["~/m.gguf"],
    ["m.gguf"],
    ["file://host/share/m.gguf"],
    ["/models/\0"],
    ["two words"],
    ["x".repeat(5000)],
  ])("%j", (source) => {
    expect(() => parsePullSource(source)).toThrow(CoreError);
    expect(problemOf(() => parsePullSource(source))).toMatchObject({
      code: "invalid-request",
      details: { param: "source" },
    });
  });

  test.each([
    ["starter", hash],
    ["https://host/m.gguf", "abc"],
    [`https://host/m.gguf#sha256=${hash}`, "b".repeat(64)],
  ])("sha256 beside %s", (source, sha256) => {
    expect(problemOf(() => parsePullSource(source, sha256))).toMatchObject({ details: { param: "sha256" } });
  });
});

function problemOf(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

test("hashes of a split model, in either place", () => {
  const both = `${hash},${"B".repeat(64)}`;
  const sha256 = [hash, "b".repeat(64)];
  expect(parsePullSource("https://host/m.gguf", both)).toMatchObject({ sha256 });
  expect(parsePullSource(`https://host/m.gguf#sha256=${both}`)).toMatchObject({ sha256 });
});

test("one source has one key, however it is written", () => {
  const key = (source: string) => keyOfSource(parsePullSource(source));
  expect(key("hf:Acme/Tiny:q4_k_m")).toBe(key("hf.co/acme/tiny:Q4_K_M"));
  expect(key(`https://host/m.gguf#sha256=${hash}`)).toBe(key("https://host/m.gguf"));
  expect(key("ollama:x")).not.toBe(key("x"));
});
