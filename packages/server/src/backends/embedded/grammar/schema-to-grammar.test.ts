import { CoreError } from "@plenum/core";
import { Ajv2020 } from "ajv/dist/2020.js";
import ajvFormats from "ajv-formats";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { schemaToGrammar } from "./index.ts";
import { matches, readGbnf, sample } from "./testing/gbnf-reader.ts";

function validatorOf(schema: unknown): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  ajvFormats.default(ajv);
  const validate = ajv.compile(typeof schema === "boolean" ? schema : { ...(schema as object) });
  return (value) => validate(value) === true;
}

/** Mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Samples must parse and validate; `fitting` must be of the grammar, `failing` must not. */
function check(
  schema: unknown,
  fitting: readonly unknown[] = [],
  failing: readonly unknown[] = [],
  samples = 60,
): void {
  const grammar = readGbnf(schemaToGrammar(schema));
  const isValid = validatorOf(schema);
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const text = sample(grammar, randomFrom(seed));
      const value: unknown = JSON.parse(text);
      if (!isValid(value)) throw new Error(`does not fit: ${text}`);
      if (!matches(grammar, text)) throw new Error(`sampled but not matched: ${text}`);
    }),
    { numRuns: samples },
  );
  for (const value of fitting) {
    expect(isValid(value), `test case ${JSON.stringify(value)}`).toBe(true);
    expect(matches(grammar, JSON.stringify(value)), JSON.stringify(value)).toBe(true);
  }
  for (const value of failing) expect(matches(grammar, JSON.stringify(value)), JSON.stringify(value)).toBe(false);
}

const object = (properties: Record<string, unknown>, required: readonly string[] = [], more = {}): unknown => ({
  type: "object",
  properties,
  required,
  ...more,
});

describe("what is held", () => {
  const cases: Record<string, [schema: unknown, fitting: unknown[], failing?: unknown[]]> = {
    "any JSON": [true, [null, 1, "x", [1, { a: [] }], {}]],
    "only annotations": [{ title: "x", description: "y", "x-note": 1 }, [1, "x"]],
    "required members in order": [
      object({ a: { type: "string" }, b: { type: "integer" } }, ["a", "b"]),
      [{ a: "x", b: 1 }],
      [{}, { a: "x" }, { b: 1, a: "x" }, { a: 1, b: 1 }],
    ],
    "optional members in any subset": [
      object({ a: { type: "null" }, b: { type: "null" }, c: { type: "null" } }, ["b"]),
      [{ b: null }, { a: null, b: null }, { b: null, c: null }, { a: null, b: null, c: null }],
      [{}, { a: null, c: null }, { b: null, d: null }],
    ],
    "all optional": [
      object({ a: { type: "null" }, b: { type: "null" } }),
      [{}, { a: null }, { b: null }, { a: null, b: null }],
      [{ c: 1 }],
    ],
    "further members": [
      object({ a: { type: "null" }, ab: { type: "null" } }, ["a"], { additionalProperties: { type: "integer" } }),
      [{ a: null }, { a: null, abc: 1 }, { a: null, ab: null, x: 5, "": 0 }, { a: null, b: 1 }],
      [
        { a: null, x: "y" },
        { a: null, x: null },
      ],
    ],
    "optional and further members": [
      object({ a: { type: "null" } }, [], { additionalProperties: true }),
      [{}, { b: [1] }, { a: null, b: {} }],
      [{ a: 1 }],
    ],
    "a map": [
      { type: "object", additionalProperties: { type: "boolean" }, maxProperties: 2 },
      [{}, { x: true, y: false }],
      [{ x: 1 }, { x: true, y: true, z: true }],
    ],
    "a map with names": [
      { type: "object", additionalProperties: { type: "integer" }, propertyNames: { pattern: "^[a-z]{2}$" } },
      [{ ab: 1 }],
      [{ a: 1 }, { abc: 1 }],
    ],
    "required without properties": [{ type: "object", required: ["x"] }, [{ x: [1] }], [{}]],
    "no members": [object({}, [], { additionalProperties: false }), [{}], [{ a: 1 }]],
    "arrays of a kind": [{ type: "array", items: { type: "boolean" } }, [[], [true], [true, false, true]], [[1]]],
    "arrays of a size": [
      { type: "array", items: { type: "null" }, minItems: 2, maxItems: 3 },
      [
        [null, null],
        [null, null, null],
      ],
      [[], [null], [null, null, null, null]],
    ],
    "empty arrays": [{ type: "array", maxItems: 0 }, [[]], [[1]]],
    "large arrays": [
      { type: "array", items: { type: "null" }, minItems: 130, maxItems: 250 },
      [Array(130).fill(null), Array(249).fill(null), Array(250).fill(null)],
      [Array(129).fill(null), Array(251).fill(null)],
    ],
    tuples: [
      { type: "array", prefixItems: [{ type: "null" }, { type: "integer" }], items: false, minItems: 1 },
      [[null], [null, 3]],
      [[], [3], [null, 3, 4]],
    ],
    "tuples with a rest": [
      { prefixItems: [{ type: "null" }], items: { type: "boolean" }, minItems: 2 },
      [
        [null, true],
        [null, true, false],
      ],
      [[null], [null, null]],
    ],
    "tuples with a free rest": [
      { prefixItems: [{ type: "null" }], items: { type: "boolean" } },
      [[], [null], [null, true, false]],
      [[true]],
    ],
    "string lengths": [
      { type: "string", minLength: 2, maxLength: 4 },
      ["ab", "äöüß", "😀😀", '"\\'],
      ["", "a", "abcde"],
    ],
    "long strings": [
      { type: "string", minLength: 210, maxLength: 999 },
      ["a".repeat(210), "a".repeat(999), "ä".repeat(500)],
      ["a".repeat(209), "a".repeat(1000)],
    ],
    "exact long strings": [
      { type: "string", minLength: 300, maxLength: 300 },
      ["a".repeat(300)],
      ["a".repeat(299), "a".repeat(301)],
    ],
    "string escapes": [{ type: "string" }, ['\n\t\r\b\f"\\/', "\u0001", "\u2028é\u0000"]],
    integers: [{ type: "integer" }, [0, -1, 9007199254740991], [1.5]],
    "non-negative integers": [{ type: "integer", minimum: 0 }, [0, 1, 10, 123456], [-1]],
    "small integers": [
      { type: "integer", minimum: -12, maximum: 305 },
      [-12, -1, 0, 9, 10, 99, 100, 299, 300, 305],
      [-13, -20, 306, 310, 400, 1000],
    ],
    "exclusive integers": [{ type: "integer", exclusiveMinimum: 1, exclusiveMaximum: 3.5 }, [2, 3], [1, 4]],
    "negative integers": [{ type: "integer", maximum: -5 }, [-5, -6, -10, -4000], [-4, 0, 5]],
    int32: [{ type: "integer", format: "int32" }, [2147483647, -2147483648], [2147483648]],
    numbers: [{ type: "number" }, [0, -1.5, 1e21, 1e-7]],
    "number in a unit": [{ type: "number", minimum: 0, maximum: 1 }, [0, 0.5, 1, 0.123456789], [-0.1, 1.1, 2]],
    "number above zero": [{ type: "number", exclusiveMinimum: 0 }, [0.001, 1, 25.5, 100000], [0, -1]],
    "number with decimals": [
      { type: "number", minimum: -2.25, exclusiveMaximum: 3.05 },
      [-2.25, -2, -0.5, 0, 3, 3.04, 3.049],
      [-2.26, -3, 3.05, 3.1, 4],
    ],
    "number between near decimals": [
      { type: "number", minimum: 1.234, maximum: 1.3 },
      [1.234, 1.2345, 1.25, 1.3],
      [1.233, 1.31, 1],
    ],
    "negative number": [{ type: "number", maximum: -0.5 }, [-0.5, -0.51, -7], [-0.4, 0, 1]],
    "multipleOf one": [{ type: "number", multipleOf: 1 }, [5], [5.5]],
    enums: [{ enum: ["a", 1, null, { x: [1] }] }, ["a", 1, null, { x: [1] }], ["b"]],
    "enums of a type": [{ type: "string", enum: ["a", 1] }, ["a"], [1]],
    constants: [{ const: 'quote"d\n' }, ['quote"d\n'], ["x"]],
    "null constant": [{ const: null }, [null], [0]],
    "several types": [{ type: ["string", "null"], maxLength: 1 }, [null, "a"], ["ab", 1]],
    nullable: [{ type: "integer", nullable: true }, [null, 4], ["a"]],
    "any of": [{ anyOf: [{ type: "string" }, { type: "array", items: { type: "integer" } }] }, ["a", [1]], [1, ["a"]]],
    "any of beside members": [
      object({ a: { type: "null" }, b: { type: "null" } }, [], { anyOf: [{ required: ["a"] }, { required: ["b"] }] }),
      [{ a: null }, { b: null }, { a: null, b: null }],
      [{}],
    ],
    "one of, told apart by a constant": [
      {
        oneOf: [
          object({ kind: { const: "x" }, v: { type: "null" } }, ["kind"]),
          object({ kind: { const: "y" } }, ["kind"]),
        ],
      },
      [{ kind: "x", v: null }, { kind: "y" }],
      [{ kind: "y", v: null }],
    ],
    "one of, told apart by a member": [
      { oneOf: [object({ a: true }, ["a"]), object({ b: true }, ["b"])] },
      [{ a: 1 }, { b: 1 }],
      [{}],
    ],
    "one of, told apart by type": [{ oneOf: [{ type: "null" }, { type: "string" }] }, [null, "x"], [1]],
    "all of objects": [
      {
        allOf: [
          object({ a: { type: "integer", minimum: 3 } }, ["a"]),
          object({ a: { maximum: 4 }, b: { type: "null" } }, ["b"]),
        ],
      },
      [
        { a: 3, b: null },
        { a: 4, b: null },
      ],
      [{ a: 2, b: null }, { a: 3 }],
    ],
    "all of with a reference": [
      {
        allOf: [{ $ref: "#/$defs/base" }, object({ b: { type: "null" } })],
        $defs: { base: object({ a: { type: "null" } }, ["a"]) },
      },
      [{ a: null }, { a: null, b: null }],
      [{ b: null }],
    ],
    references: [{ $ref: "#/definitions/a~1b", definitions: { "a/b": { type: "integer", maximum: 1 } } }, [1], [2]],
    "reference beside keywords": [
      { $ref: "#/$defs/n", maximum: 5, $defs: { n: { type: "integer", minimum: 4 } } },
      [4, 5],
      [3, 6],
    ],
    recursion: [
      {
        $ref: "#/$defs/node",
        $defs: {
          node: object({ v: { type: "integer" }, next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] } }, [
            "v",
            "next",
          ]),
        },
      },
      [
        { v: 1, next: null },
        { v: 1, next: { v: 2, next: null } },
      ],
      [{ v: 1, next: {} }],
    ],
    "recursion to the root": [
      object({ children: { type: "array", items: { $ref: "#" } } }, ["children"]),
      [{ children: [] }, { children: [{ children: [] }] }],
      [{ children: [1] }],
    ],
    "member named __proto__": [
      JSON.parse('{"type":"object","properties":{"__proto__":{"type":"null"}},"required":["__proto__"]}'),
      [JSON.parse('{"__proto__":null}')],
      [{}],
    ],
    "pattern of words": [{ type: "string", pattern: "^[a-z]+(-[a-z]+)*$" }, ["a", "ab-cd"], ["A", "-a"]],
    "pattern with escapes": [
      { type: "string", pattern: '^\\d{3}\\s"\\\\[^a-z\\n]?(x|yz)+?$' },
      ['123 "\\Ax', '123\t"\\yz'],
      ['123 "\\ax'],
    ],
    "pattern without anchors": [{ type: "string", pattern: "@" }, ["@", "a@b", "@@@"], ["", "ab"]],
    "pattern with alternatives": [{ type: "string", pattern: "^a|b$" }, ["ax", "xb", "a"], ["x"]],
    "pattern with a length": [
      { type: "string", pattern: "^[a-z][a-z0-9_]*$", maxLength: 4 },
      ["a", "ab_9"],
      ["", "9", "abcde"],
    ],
    "pattern with any characters": [
      { type: "string", pattern: "^.\\u{1F600}[\\u00e0-\\u00ff]\\x41$" },
      ["a😀éA", '"😀éA'],
      ["\n😀éA"],
    ],
    date: [
      { type: "string", format: "date" },
      ["2024-02-29", "2023-12-31"],
      ["2023-02-29", "2023-13-01", "2023-04-31"],
    ],
    time: [{ type: "string", format: "time" }, ["23:59:59Z", "00:00:00.5+02:00"], ["24:00:00Z", "10:00"]],
    "date-time": [
      { type: "string", format: "date-time" },
      ["2026-11-30T10:00:00Z"],
      ["2026-11-30", "2026-11-31T10:00:00Z"],
    ],
    duration: [{ type: "string", format: "duration" }, ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P3W"], ["P", "PT", "1D"]],
    email: [{ type: "string", format: "email" }, ["a.b+c@example.org"], ["a", "a@", "@b.c"]],
    hostname: [{ type: "string", format: "hostname" }, ["example.org", "localhost"], ["-a", "a..b"]],
    ipv4: [{ type: "string", format: "ipv4" }, ["127.0.0.1", "255.255.255.255"], ["256.1.1.1", "1.1.1"]],
    ipv6: [
      { type: "string", format: "ipv6" },
      ["::", "::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "1::8"],
      [":", "1:2", "1::2::3"],
    ],
    uri: [
      { type: "string", format: "uri" },
      ["https://example.org/a/b?c=d#e", "http://localhost:7411"],
      ["x", "http//a"],
    ],
    uuid: [{ type: "string", format: "uuid" }, ["01234567-89ab-cdef-0123-456789abcdef"], ["01234567"]],
  };
  test.each(Object.entries(cases))("%s", (_name, [schema, fitting, failing]) => {
    check(schema, fitting, failing);
  });
});

describe("what is refused", () => {
  const cases: Record<string, [schema: unknown, words: RegExp]> = {
    false: [false, /at its root: is false/],
    "not a schema": [5, /no schema/],
    "unknown type": [{ type: "text" }, /type "text"/],
    "unknown keyword": [{ type: "integer", maximun: 3 }, /maximun .*remove it/],
    not: [object({ a: { not: {} } }), /at \/properties\/a: not can't be held/],
    if: [{ if: {} }, /if can't/],
    patternProperties: [
      { patternProperties: { a: {} } },
      /patternProperties .*additionalProperties with propertyNames/,
    ],
    "unique items": [{ type: "array", uniqueItems: true }, /uniqueItems/],
    "items as a list": [{ type: "array", items: [{}] }, /prefixItems/],
    multiples: [object({ n: { type: "number", multipleOf: 0.5 } }), /at \/properties\/n: multipleOf/],
    "overlapping oneOf": [
      { oneOf: [{ type: "integer" }, { type: "number" }] },
      /oneOf whose branches may overlap.*anyOf/,
    ],
    "overlapping objects": [{ oneOf: [object({ a: true }), object({ b: true })] }, /oneOf/],
    "remote reference": [{ $ref: "https://example.org/x.json" }, /points outside/],
    "missing reference": [{ $ref: "#/$defs/x" }, /leads nowhere/],
    "reference to itself": [{ $ref: "#" }, /back to itself/],
    "reference in a circle": [
      { anyOf: [{ $ref: "#/$defs/a" }], $defs: { a: { anyOf: [{ $ref: "#/$defs/a" }, { type: "null" }] } } },
      /back to itself/,
    ],
    "endless value": [object({ next: { $ref: "#" } }, ["next"]), /no value ever ends/],
    "unknown format": [{ type: "string", format: "iri" }, /format "iri".*date-time/],
    "look-ahead": [{ type: "string", pattern: "^(?=a)b$" }, /pattern looks ahead/],
    "back reference": [{ type: "string", pattern: "^(a)\\1$" }, /pattern uses/],
    "broken pattern": [{ type: "string", pattern: "(" }, /no regular expression/],
    "pattern with a length that can't be joined": [
      { type: "string", pattern: "^a*b*$", maxLength: 3 },
      /put the length into the pattern/,
    ],
    "no room": [{ type: "integer", minimum: 5, maximum: 4 }, /no integer/],
    "swapped lengths": [{ type: "string", minLength: 5, maxLength: 4 }, /nothing fits/],
    "huge length": [{ type: "string", maxLength: 1e9 }, /maxLength is above 20000/],
    "huge bound": [{ type: "integer", maximum: 1e300 }, /too large/],
    "tiny bound": [{ type: "number", minimum: 1e-9 }, /held exactly/],
    "types that exclude each other": [{ allOf: [{ type: "string" }, { type: "null" }] }, /nothing fits/],
    "closed part of allOf": [
      { allOf: [object({ a: true }, [], { additionalProperties: false }), object({ b: true })] },
      /forbids "b"/,
    ],
    "required but forbidden": [object({ a: true }, ["b"], { additionalProperties: false }), /required names "b"/],
    "enum beside a length": [{ enum: ["a"], minLength: 3 }, /minLength beside enum/],
    "too many properties asked": [object({ a: true }, [], { minProperties: 1 }), /minProperties/],
    "malformed count": [{ type: "array", minItems: -1 }, /minItems has to be/],
    "inner $id": [object({ a: { $id: "x", type: "null" } }), /\$id/],
  };
  test.each(Object.entries(cases))("%s", (_name, [schema, words]) => {
    const error = catchError(() => schemaToGrammar(schema));
    expect(error).toBeInstanceOf(CoreError);
    expect((error as CoreError).code).toBe("invalid-request");
    expect((error as CoreError).message).toMatch(words);
    expect((error as CoreError).details.param).toBe("output.format.schema");
  });

  test("deep nesting", () => {
    let schema: unknown = { type: "null" };
    for (let level = 0; level < 100; level += 1) schema = { type: "array", items: schema };
    expect(() => schemaToGrammar(schema)).toThrow(/nested deeper than 64 levels/);
  });

  test("very many members", () => {
    const properties = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`m${index}`, { type: "null" }]));
    expect(() => schemaToGrammar({ type: "object", properties })).toThrow(/at most 5000 are looked at|more than 4000/);
  });

  test("references that unfold without end", () => {
    const again = (index: number): unknown => ({ allOf: [{ $ref: `#/$defs/d${index + 1}` }] });
    const definitions = Array.from({ length: 30 }, (_, index) => [
      `d${index}`,
      { anyOf: [again(index), again(index)] },
    ]);
    const $defs = { ...Object.fromEntries(definitions), d30: { type: "null" } };
    expect(() => schemaToGrammar({ $ref: "#/$defs/d0", $defs })).toThrow(/at most 5000 are looked at/);
  });

  test("very many branches", () => {
    const anyOf = Array.from({ length: 201 }, (_, index) => ({ const: index }));
    expect(() => schemaToGrammar({ anyOf })).toThrow(/more than 200 branches/);
  });

  test("the param of a tool", () => {
    const error = catchError(() => schemaToGrammar(false, { param: "tools[2].parameters" }));
    expect((error as CoreError).details.param).toBe("tools[2].parameters");
  });
});

function catchError(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("random schemas", () => {
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, depthIdentifier: "schema" },
      fc.constantFrom({ type: "boolean" }, { type: "null" }, { type: "string" }, { type: "number" }),
      fc
        .tuple(fc.integer({ min: -1200, max: 1200 }), fc.nat(1500))
        .map(([low, span]) => ({ type: "integer", minimum: low, maximum: low + span })),
      fc
        .tuple(fc.integer({ min: -3000, max: 3000 }), fc.nat(5000), fc.constantFrom(1, 10, 1000), fc.boolean())
        .map(([low, span, scale, isOpen]) => ({
          type: "number",
          [isOpen ? "exclusiveMinimum" : "minimum"]: low / scale,
          maximum: (low + span + 1) / scale,
        })),
      fc
        .tuple(fc.nat(3), fc.nat(150))
        .map(([low, span]) => ({ type: "string", minLength: low, maxLength: low + span })),
      fc.record({
        type: fc.constant("array"),
        items: tie("schema"),
        minItems: fc.nat(2),
        maxItems: fc.integer({ min: 2, max: 4 }),
      }),
      fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
      fc
        .tuple(
          fc.dictionary(fc.string({ unit: "grapheme", maxLength: 4 }), tie("schema"), { maxKeys: 4 }),
          fc.nat(15),
          fc.boolean(),
        )
        .map(([properties, mask, isOpen]) => ({
          type: "object",
          properties,
          required: Object.keys(properties).filter((_, index) => (mask >> index) % 2 === 1),
          ...(isOpen ? { additionalProperties: { type: "integer" } } : {}),
        })),
    ),
  }));

  test("every text of the grammar is valid", () => {
    fc.assert(
      fc.property(schema, (each) => check(each, [], [], 5)),
      { numRuns: 100 },
    );
  }, 60_000);

  test("every integer within bounds is of the grammar, none outside", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -5000, max: 5000 }),
        fc.nat(3000),
        fc.integer({ min: -9000, max: 9000 }),
        (low, span, value) => {
          const grammar = readGbnf(schemaToGrammar({ type: "integer", minimum: low, maximum: low + span }));
          expect(matches(grammar, String(value))).toBe(value >= low && value <= low + span);
        },
      ),
    );
  });

  test("decimals within bounds are of the grammar, none outside", () => {
    const decimal = fc.integer({ min: -4000, max: 4000 }).map((value) => value / 100);
    fc.assert(
      fc.property(decimal, decimal, decimal, fc.boolean(), (a, b, value, isOpen) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b) + 0.5];
        const grammar = readGbnf(
          schemaToGrammar({ type: "number", [isOpen ? "exclusiveMinimum" : "minimum"]: low, maximum: high }),
        );
        expect(matches(grammar, String(value))).toBe((isOpen ? value > low : value >= low) && value <= high);
      }),
    );
  });
});

test("whitespace is at most one space, after commas and colons", () => {
  const grammar = readGbnf(
    schemaToGrammar(object({ a: { type: "array", items: { type: "integer" } }, b: true }, ["a", "b"])),
  );
  expect(matches(grammar, '{"a": [1, 2],"b": null}')).toBe(true);
  expect(matches(grammar, '{"a":  [1], "b": null}')).toBe(false);
  expect(matches(grammar, '{ "a": [1], "b": null}')).toBe(false);
  expect(matches(grammar, '{"a": [1],\n"b": null}')).toBe(false);
});
