import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError, type ConfigFlags, type Environment, loadConfig } from "./index.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-runtimes-"));
});
afterEach(() => rm(folder, { recursive: true }));

async function load(text: string, flags: ConfigFlags = {}, env: Environment = {}) {
  await writeFile(join(folder, "plenum.config.yaml"), text);
  return loadConfig({ flags, env: { HOME: folder, ...env }, cwd: folder, isTerminal: false });
}

async function mistakesOf(text: string, flags: ConfigFlags = {}, env: Environment = {}): Promise<readonly string[]> {
  try {
    await load(text, flags, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.lines.map((line) => line.replaceAll(`${folder}/`, ""));
    throw error;
  }
  throw new Error("the configuration was taken");
}

test("reads runtimes in the file's order, with keys from the file and the environment", async () => {
  const text = `
runtimes:
  studio: { kind: ollama, url: "http://192.0.2.7:11434/", parallel: 2, models: ["qwen*"] }
  gpu:
    kind: vllm
    url: https://gpu.example.com/base
    api_key_env: GPU_KEY
    headers: { X-Team: a }
  local: { kind: openai-compatible, url: "http://127.0.0.1:4000", api_key: in-file }
`;
  expect((await load(text, {}, { GPU_KEY: "from-env" })).runtimes).toEqual([
    { name: "studio", kind: "ollama", url: "http://192.0.2.7:11434", headers: {}, parallel: 2, models: ["qwen*"] },
    { name: "gpu", kind: "vllm", url: "https://gpu.example.com/base", apiKey: "from-env", headers: { "X-Team": "a" } },
    { name: "local", kind: "openai-compatible", url: "http://127.0.0.1:4000", apiKey: "in-file", headers: {} },
  ]);
});

test.each([
  "nnrp://h:1",
  "nnrps://h:1",
  "tcp://[::1]:1",
  "tls://h:1",
  "ws://h/nnrp",
  "wss://h:1/n",
  "unix:///a/b",
  "npipe://n",
])("%s is an address of NNRP", async (url) => {
  const { runtimes } = await load(`runtimes: { far: { kind: nnrp, url: "${url}", api_key: k } }`);
  expect(runtimes).toEqual([{ name: "far", kind: "nnrp", url, apiKey: "k", headers: {} }]);
});

test.each<[string, string, ConfigFlags, Environment, boolean]>([
  ["default", "", {}, {}, true],
  ["file", "find_local_runtimes: false", {}, {}, false],
  ["variable", "", {}, { PLENUM_LOCAL_RUNTIMES: "false" }, false],
  ["variable as digit, over the file", "find_local_runtimes: false", {}, { PLENUM_LOCAL_RUNTIMES: "1" }, true],
  ["flag, over the variable", "", { localRuntimes: false }, { PLENUM_LOCAL_RUNTIMES: "true" }, false],
])("local runtimes are looked for or not: %s", async (_name, text, flags, env, expected) => {
  expect((await load(text, flags, env)).findLocalRuntimes).toBe(expected);
});

test("names the variable that says neither", async () => {
  expect(await mistakesOf("", {}, { PLENUM_LOCAL_RUNTIMES: "maybe" })).toEqual([
    'PLENUM_LOCAL_RUNTIMES  find_local_runtimes: expected true or false, got "maybe"',
  ]);
});

const url = 'url: "http://127.0.0.1:1"';

test.each([
  ["a wrong kind", `a: { kind: lama, ${url} }`, /^.*:2:14 {2}runtimes\.a\.kind: expected one of ollama, .*"lama"$/],
  ["no url", "a: { kind: ollama }", /runtimes\.a\.url is missing: expected a URL such as/],
  [
    "near miss",
    `a: { kind: ollama, ${url}, api_kye: s3cret }`,
    /runtimes\.a\.api_kye: unknown option; did you mean "api_key"\?$/,
  ],
  ["a bad name", `"a/b": { kind: ollama, ${url} }`, /^.*:2:3 {2}runtimes\.a\/b: expected a name of up to 64/],
  ["a taken name", `embedded: { kind: ollama, ${url} }`, /runtimes\.embedded: this name is taken/],
  ["no mapping", "a: s3cret", /runtimes\.a: expected a mapping of options$/],
  ["password in the url", `a: { kind: ollama, url: "http://u:s3cret@host" }`, /without user, password or query/],
  ["query in the url", `a: { kind: ollama, url: "http://host/?key=s3cret" }`, /without user, password or query/],
  ["another protocol", `a: { kind: ollama, url: "ftp://host" }`, /expected a URL such as/],
  ["http for nnrp", `a: { kind: nnrp, ${url} }`, /url: expected an address such as nnrp:/],
  ["nnrp for another kind", 'a: { kind: vllm, url: "nnrp://h:1" }', /url: expected a URL such as http/],
  ["nnrp without a port", 'a: { kind: nnrp, url: "nnrp://h" }', /url: expected an address such as nnrp:/],
  ["a token in the query", 'a: { kind: nnrp, url: "ws://h/nnrp?token=s3cret" }', /without user, password or query/],
  ["a key that is no text", `a: { kind: ollama, ${url}, api_key: [s3cret] }`, /api_key: expected a key$/],
  [
    "a key in place of its variable",
    `a: { kind: ollama, ${url}, api_key_env: sk-s3cret }`,
    /the name of an environment variable$/,
  ],
  [
    "a variable that is not set",
    `a: { kind: ollama, ${url}, api_key_env: hf_s3cret }`,
    /api_key_env: the environment variable of this name is not set$/,
  ],
  [
    "both keys",
    `a: { kind: ollama, ${url}, api_key_env: A_s3cret, api_key: s3cret }`,
    /api_key_env: there is an api_key too/,
  ],
  [
    "a header of two lines",
    `a: { kind: ollama, ${url}, headers: { a: "s3cret\\r\\nb: c" } }`,
    /headers\.a: expected the header's value as one line/,
  ],
  [
    "a header's bad name",
    `a: { kind: ollama, ${url}, headers: { "a b": s3cret } }`,
    /headers\.a b: expected a header's name$/,
  ],
  [
    "headers as text",
    `a: { kind: ollama, ${url}, headers: "x: s3cret" }`,
    /headers: expected a mapping from header name to value$/,
  ],
  [
    "too many at once",
    `a: { kind: ollama, ${url}, parallel: 0 }`,
    /parallel: expected a whole number from 1 to 65536, got 0$/,
  ],
])("refuses with its place and without the secret: %s", async (_name, text, expected) => {
  const lines = await mistakesOf(`runtimes:\n  ${text}\n`);
  expect(lines).toEqual([expect.stringMatching(expected)]);
  expect(lines[0]).toMatch(/^plenum\.config\.yaml:2:\d+ /);
  expect(lines[0]).not.toContain("s3cret");
});
