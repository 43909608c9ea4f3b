import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { exitCodes } from "../exit-codes.ts";
import { runProgram } from "../program.ts";
import { type FakeOptions, fakeSurroundings, json, problem } from "../testing/fake-surroundings.ts";

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-tokens-"));
});
afterEach(() => rm(home, { recursive: true, force: true }));

async function tokens(argv: readonly string[], options: FakeOptions = {}) {
  const around = fakeSurroundings({ ...options, env: { PLENUM_HOME: home, ...options.env } });
  const code = await runProgram(["tokens", ...argv], around);
  return { code, ...around.written, requests: around.requests };
}

const made = { id: "tok_1", principal: "ada", scopes: ["infer"], token: "plenum_new" };

test("create asks the service, and prints the token alone", async () => {
  const argv = ["--principal", "ada", "--scope", "infer", "--model", "s*", "--requests-per-minute", "60"];
  const service = { "POST /lmsp/v1/tokens": json(made, 201) };
  const { code, output, errors, requests } = await tokens(["create", ...argv, "--top-priority", "-2"], { service });
  expect([code, output]).toEqual([exitCodes.ok, "plenum_new\n"]);
  expect(errors).toContain("tok_1");
  expect(requests[0]?.body).toEqual({
    principal: "ada",
    scopes: ["infer"],
    models: ["s*"],
    limits: { requests_per_minute: 60, top_priority: -2 },
  });
});

test("list, rotate and revoke ask the service", async () => {
  const service = {
    "GET /lmsp/v1/tokens": json({
      data: [
        { ...made, limits: { concurrency: 2 } },
        { ...made, principal: "bob" },
      ],
    }),
    "POST /lmsp/v1/tokens/tok_1/rotate": json(made, 201),
    "DELETE /lmsp/v1/tokens/tok_1": () => new Response(null, { status: 204 }),
  };
  const listed = await tokens(["list", "--principal", "ada"], { service });
  expect(listed.output).toContain("concurrency=2");
  expect(listed.output).not.toContain("bob");
  const rotated = await tokens(["rotate", "tok_1", "--grace", "60"], { service });
  expect([rotated.output, rotated.requests[0]?.body]).toEqual(["plenum_new\n", { grace_s: 60 }]);
  expect(JSON.parse((await tokens(["revoke", "tok_1", "--json"], { service })).output)).toEqual({ revoked: "tok_1" });
});

test.each<[string, Readonly<Record<string, string>>, readonly string[], readonly (string | null)[]]>([
  ["this machine's own", {}, [], [null, "Bearer plenum_first"]],
  ["at one of its addresses", {}, ["--url", "http://127.0.0.1:9000"], [null, "Bearer plenum_first"]],
  ["elsewhere", {}, ["--url", "http://studio.example:7411"], [null]],
  ["told another token", { PLENUM_TOKEN: "mine" }, [], ["Bearer mine"]],
])(
  "a service that wants a token gets the first one when it is %s",
  { timeout: 60_000 },
  async (_name, env, argv, sent) => {
    await writeFile(join(home, "admin-token"), "plenum_first\n", { mode: 0o600 });
    const answers = [problem("unauthorized", 401, "Send a token."), json({ data: [] })];
    const service = { "GET /lmsp/v1/tokens": () => answers.shift()?.() ?? new Response(null, { status: 500 }) };
    const { code, requests } = await tokens(["list", ...argv], { env, service });
    expect(requests.map(({ authorization }) => authorization)).toEqual(sent);
    expect(code).toBe(sent.length === 2 ? exitCodes.ok : exitCodes.failure);
  },
);

test("where no service answers, the tokens of this machine's own folder are changed", { timeout: 60_000 }, async () => {
  const refused = await tokens(["create", "--principal", "ada"]);
  expect([refused.code, refused.output]).toEqual([exitCodes.failure, ""]);
  expect(refused.errors).toContain("Make a token with the scope 'admin' first");
  const root = await tokens(["create", "--principal", "root", "--scope", "admin"]);
  expect(root.errors).toContain("No service answers");
  expect(root.output).toMatch(/^plenum_[\w-]{43}\n$/);
  await tokens(["create", "--principal", "ada", "--concurrency", "2"]);
  const { data } = JSON.parse((await tokens(["list", "--json"])).output);
  expect(data).toMatchObject([
    { principal: "root", scopes: ["admin"] },
    { principal: "ada", scopes: ["read", "infer"], limits: { concurrency: 2 } },
  ]);
  expect((await tokens(["revoke", data[1].id])).code).toBe(exitCodes.ok);
  expect(JSON.parse((await tokens(["list", "--json"])).output).data).toHaveLength(1);
});

test("a service that was named must answer", async () => {
  expect((await tokens(["list", "--url", "http://127.0.0.1:9"])).code).toBe(exitCodes.unreachable);
});
