import { describe, expect, test } from "vitest";
import { formatTxt, parseTxt, type ServiceTxt } from "./txt.ts";

const bytes = (...strings: readonly string[]) => strings.map((text) => new TextEncoder().encode(text));
const id = "9b1d0000-0000-4000-8000-000000000000";
const whole: ServiceTxt = { version: "1.0", id, tls: false, auth: "bearer", kinds: ["lmsp", "openai"] };

test("what is announced is read again, `txtvers` first (RFC 6763 §6.7)", () => {
  const pairs = Object.entries(formatTxt(whole)).map(([key, value]) => `${key}=${value}`);
  expect(pairs[0]).toBe("txtvers=1");
  expect(pairs).toContain("path=/.well-known/lmsp");
  expect(parseTxt(bytes(...pairs))).toEqual(whole);
});

describe("a record is read as DNS-SD has it", () => {
  test.each<[string, readonly string[], Partial<ServiceTxt>]>([
    ["keys in any case", [`ID=${id}`, "V=1.7", "Auth=bearer"], { version: "1.7", auth: "bearer" }],
    ["the first of a key counts", [`id=${id}`, "v=1.0", "tls=1", "tls=0"], { tls: true }],
    ["flags and nameless values are passed over", ["flag", "=x", "", `id=${id}`, "v=1.0"], {}],
    ["a value may hold `=`", [`id=${id}`, "v=1.0", "note=a=b"], {}],
    [
      "kinds that are no words are left out",
      [`id=${id}`, "v=1.0", "kinds=lmsp,,<b>,a b,nnrp"],
      { kinds: ["lmsp", "nnrp"] },
    ],
    ["an unknown kind of auth is no promise", [`id=${id}`, "v=1.0", "auth=magic"], { auth: "none" }],
  ])("%s", (_name, strings, expected) => {
    expect(parseTxt(bytes(...strings))).toMatchObject({ id, ...expected });
  });

  test("of many kinds only the first are kept", () => {
    const kinds = Array.from({ length: 100 }, (_, place) => `k${place}`).join(",");
    expect(parseTxt(bytes(`id=${id}`, "v=1.0", `kinds=${kinds}`))?.kinds).toHaveLength(16);
  });
});

test.each<[string, readonly string[]]>([
  ["nothing", []],
  ["no id", ["v=1.0"]],
  ["no version", [`id=${id}`]],
  ["another major version", [`id=${id}`, "v=2.0"]],
  ["a version that is none", [`id=${id}`, "v=1.x"]],
  ["another form of the record", ["txtvers=2", `id=${id}`, "v=1.0"]],
  ["an id with other characters", ["id=../../etc", "v=1.0"]],
  ["an id that is too long", [`id=${"a".repeat(65)}`, "v=1.0"]],
  ["an id that would end a line", ["id=a\nb", "v=1.0"]],
])("no service: %s", (_name, strings) => {
  expect(parseTxt(bytes(...strings))).toBeUndefined();
});

test("bytes that are no text make no service", () => {
  expect(parseTxt([Uint8Array.of(0xff, 0xfe, 0x3d, 0x80), Uint8Array.of()])).toBeUndefined();
});
