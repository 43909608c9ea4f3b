import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { runProgram } from "./program.ts";
import { type FakeOptions, fakeSurroundings, json, problem } from "./testing/fake-surroundings.ts";

async function plenum(argv: readonly string[], options: FakeOptions = {}) {
  const around = fakeSurroundings(options);
  const code = await runProgram(argv, around);
  return { code, ...around.written, requests: around.requests };
}

const model = {
  id: "smollm2:135m",
  name: "SmolLM2 135M Instruct",
  aliases: [],
  state: "loaded",
  capabilities: { chat: true, embeddings: false, tools: true },
  emulated: ["tools"],
  limits: { context_tokens: 8192, parallel: 4 },
  details: { parameters: 134_515_008, quantization: "Q4_1", size_bytes: 98_362_432 },
  runtimes: [{ id: "embedded", kind: "llama.cpp", state: "healthy" }],
};
const unknown = { ...model, id: "x", state: "unavailable", emulated: [], limits: {}, details: {}, runtimes: [] };

test("models as a table", async () => {
  const service = { "GET /lmsp/v1/models": json({ data: [model, unknown], next_cursor: null }) };
  expect(await plenum(["models"], { service })).toMatchObject({
    code: 0,
    output: `MODEL         STATE        CAPABILITIES  CONTEXT  PARAMETERS  QUANTIZATION  SIZE    RUNTIME
smollm2:135m  loaded       chat,tools*   8192     135M        Q4_1          94 MiB  embedded
x             unavailable  chat,tools    -        -           -             -       -
`,
  });
});

test("models as JSON", async () => {
  const page = { data: [model], next_cursor: null };
  const { code, output } = await plenum(["models", "--json"], { service: { "GET /lmsp/v1/models": json(page) } });
  expect(code).toBe(0);
  expect(JSON.parse(output)).toEqual(page);
});

test("no models: says what to do", async () => {
  const service = { "GET /lmsp/v1/models": json({ data: [], next_cursor: null }) };
  expect(await plenum(["models"], { service })).toMatchObject({
    code: 0,
    output: "",
    errors: "The service has no models. `plenum pull starter` fetches a small one.\n",
  });
});

test.each([
  ["flag", ["--token", "a"], {}, "Bearer a"],
  ["variable", [], { PLENUM_TOKEN: "b" }, "Bearer b"],
  ["flag over variable", ["--token", "a"], { PLENUM_TOKEN: "b" }, "Bearer a"],
  ["none", [], { PLENUM_TOKEN: "" }, null],
])("token by %s", async (_name, argv, env, authorization) => {
  const service = { "GET /lmsp/v1/models": json({ data: [model] }) };
  expect((await plenum(["models", ...argv], { env, service })).requests).toMatchObject([{ authorization }]);
});

test("no service: exit code 3, the address and what to do", async () => {
  expect(await plenum(["models"], { env: { PLENUM_PORT: "8080" } })).toMatchObject({
    code: 3,
    output: "",
    errors: `plenum: No service answers at http://127.0.0.1:8080 (ECONNREFUSED).
Start one with \`plenum serve\`, or name the service's address with --url or PLENUM_URL.
`,
  });
});

test("a refusal: exit code 1, its detail and what to do", async () => {
  const service = { "GET /lmsp/v1/models": problem("unauthorized", 401, "A token is\u001b[31m needed.") };
  expect(await plenum(["models"], { service })).toMatchObject({
    code: 1,
    errors: `plenum: A token is[31m needed.
Pass a token with --token or PLENUM_TOKEN; \`plenum tokens create\` makes one.
`,
  });
});

test("an error as JSON", async () => {
  const { code, errors } = await plenum(["models", "--json"]);
  expect(code).toBe(3);
  expect(JSON.parse(errors)).toMatchObject({ error: { code: "unreachable", status: 0 } });
});

test.each([
  ["an unknown command", ["modles"], "plenum: unknown command 'modles'\n(Did you mean models?)"],
  ["an unknown flag", ["models", "--jsn"], "plenum: unknown option '--jsn'\n(Did you mean --json?)"],
  ["a missing argument", ["run"], "plenum: missing required argument 'model'"],
  ["a wrong number", ["run", "m", "hi", "--max-tokens", "many"], "is invalid. It is no whole number."],
  ["a missing principal", ["tokens", "create"], "plenum: required option '--principal <id>' not specified"],
  ["a wrong scope", ["tokens", "create", "--principal", "a", "--scope", "all"], '"all" is none of read, infer'],
  ["no prompt", ["run", "m"], "plenum: There is no prompt"],
])("usage, exit code 2: %s", async (_name, argv, message) => {
  const { code, output, errors } = await plenum(argv, { input: "" });
  expect(code).toBe(2);
  expect(output).toBe("");
  expect(errors).toContain(message);
});

test.each([
  [[], "Start here:"],
  [["serve"], "plenum serve --host 0.0.0.0"],
  [["models"], "jq -r"],
  [["run"], "git diff | plenum run"],
  [["tokens", "create"], "--scope infer"],
])("help of %j teaches with examples", async (words, example) => {
  const { code, output } = await plenum([...words, "--help"]);
  expect(code).toBe(0);
  expect(output).toContain(example);
});

test("the version is the package's", async () => {
  expect(await plenum(["--version"])).toMatchObject({ code: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});

test("a token and its lines for the configuration", async () => {
  const { code, output } = await plenum([
    "tokens",
    "create",
    "--for-config",
    "--principal",
    "ada: x",
    "--scope",
    "read,admin",
  ]);
  expect(code).toBe(0);
  const token = output.match(/plenum_[\w-]{43}/)?.[0] ?? "";
  const hash = createHash("sha256").update(token).digest("hex");
  expect(output).toContain(`auth:
  tokens:
    - principal: "ada: x"
      token_sha256: "${hash}"
      scopes: ["read","admin"]
`);
});

test("a token as JSON, another one each time", async () => {
  const argv = [
    "tokens",
    "create",
    "--for-config",
    "--principal",
    "a",
    "--model",
    "s*",
    "--expires",
    "2030-01-31",
    "--json",
  ];
  const made = [JSON.parse((await plenum(argv)).output), JSON.parse((await plenum(argv)).output)];
  expect(made[0]).toMatchObject({
    config: {
      principal: "a",
      scopes: ["read", "infer"],
      models: ["s*"],
      expires_at: "2030-01-31T00:00:00.000Z",
      token_sha256: createHash("sha256").update(made[0].token).digest("hex"),
    },
  });
  expect(made[0].token).not.toBe(made[1].token);
});
