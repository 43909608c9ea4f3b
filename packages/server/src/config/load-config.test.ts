import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError, type ConfigFlags, type Environment, exposedAddress, loadConfig } from "./index.ts";
import { shareOrBytes } from "./sizes.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-config-"));
});
afterEach(() => rm(folder, { recursive: true }));

const hash = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5";

async function load(text?: string, flags: ConfigFlags = {}, env: Environment = {}) {
  if (text !== undefined) await writeFile(join(folder, "plenum.config.yaml"), text);
  return loadConfig({ flags, env: { HOME: folder, ...env }, cwd: folder, isTerminal: false });
}

async function mistakesOf(text?: string, flags: ConfigFlags = {}, env: Environment = {}): Promise<readonly string[]> {
  try {
    await load(text, flags, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.lines.map((line) => line.replaceAll(`${folder}/`, ""));
    throw error;
  }
  throw new Error("the configuration was taken");
}

test("runs on defaults alone", async () => {
  expect(await load()).toEqual({
    name: hostname(),
    host: "127.0.0.1",
    port: 7411,
    home: join(folder, ".plenum"),
    models: join(folder, ".plenum/models"),
    hosts: [],
    corsOrigins: [],
    trustedProxies: [],
    limits: {
      requestBytes: 33_554_432,
      queue: 512,
      logBytesPerResponse: 8_388_608,
      logBytesTotal: 268_435_456,
      eventRetentionMs: 3_600_000,
      textRetentionMs: 60_000,
      resumeWindowMs: 60_000,
      loadTimeoutMs: 120_000,
      headerTimeoutMs: 30_000,
      idleTimeoutMs: 75_000,
      drainMs: 30_000,
      defaultDeadlineMs: 0,
    },
    store: {
      kind: "sqlite",
      path: join(folder, ".plenum/plenum.db"),
      maxBytes: 2_147_483_648,
      content: "always",
      taskRetentionMs: 604_800_000,
    },
    auth: { tokens: [] },
    insecureOpen: false,
    log: { level: "info", format: "json" },
    nnrp: {
      listen: [],
      connections: 1024,
      sessionsPerConnection: 64,
      operationsPerSession: 64,
      frameBytes: 16_777_216,
      handshakeTimeoutMs: 10_000,
      idleTimeoutMs: 600_000,
    },
    embedded: { enabled: true, parallel: 4, gpu: "auto", keepAliveMs: 1_800_000, memoryBudget: 0.8, models: {} },
    aliases: new Map(),
    sameAs: new Map(),
    pull: { hubUrl: "https://huggingface.co" },
    runtimes: [],
    discovery: false,
    findLocalRuntimes: true,
    starterModel: true,
  });
});

test("reads every section of a file", async () => {
  const config = await load(`
name: studio
host: "[::1]"
public_url: https://models.example.com/
home: state
models: ../weights
hosts: [Box.Example]
cors_origins: ["*"]
limits: { queue_per_principal: 8, drain_ms: 0 }
auth:
  tokens:
    - { principal: ada, token_sha256: ${hash}, scopes: [read, infer], models: ["smol*"], expires_at: 2030-01-31T00:00:00Z, top_priority: 2 }
log: { level: debug, format: pretty }
embedded:
  keep_alive: -1
  context_tokens: 4096
  models:
    a.gguf: { id: "a:1b", aliases: [a], parallel: 2 }
starter_model: false
`);
  expect(config).toMatchObject({
    name: "studio",
    host: "::1",
    publicUrl: "https://models.example.com",
    home: join(folder, "state"),
    models: join(folder, "../weights"),
    hosts: ["box.example"],
    corsOrigins: ["*"],
    limits: { queuePerPrincipal: 8, drainMs: 0, queue: 512 },
    auth: {
      tokens: [
        {
          principal: "ada",
          tokenSha256: hash,
          scopes: ["read", "infer"],
          models: ["smol*"],
          expiresAtMs: Date.UTC(2030, 0, 31),
          topPriority: 2,
        },
      ],
    },
    log: { level: "debug", format: "pretty" },
    embedded: {
      keepAliveMs: -1,
      contextTokens: 4096,
      models: { "a.gguf": { id: "a:1b", aliases: ["a"], parallel: 2 } },
    },
    starterModel: false,
    file: join(folder, "plenum.config.yaml"),
  });
});

test("flags win over environment, environment over file", async () => {
  const file = "port: 1\nhost: localhost\nlog: { level: warn }\n";
  const config = await load(
    file,
    { port: "3", starterModel: false },
    { PLENUM_PORT: "2", PLENUM_HOST: "127.0.0.2", PLENUM_MODELS: "~/m", PLENUM_HOME: "" },
  );
  expect(config).toMatchObject({ port: 3, host: "127.0.0.2", log: { level: "warn" }, starterModel: false });
  expect(config.models).toBe(join(folder, "m"));
});

test("finds the file by flag, variable, working folder and home, in this order", async () => {
  const home = join(folder, "home");
  await mkdir(home);
  await writeFile(join(home, "plenum.config.yaml"), "name: home");
  await writeFile(join(folder, "a.yaml"), "name: flag");
  await writeFile(join(folder, "b.yaml"), "name: variable");
  expect((await load(undefined, {}, { PLENUM_HOME: home })).name).toBe("home");
  expect((await load("name: here", {}, { PLENUM_HOME: home })).name).toBe("here");
  expect((await load(undefined, {}, { PLENUM_CONFIG: "b.yaml" })).name).toBe("variable");
  expect((await load(undefined, { config: "a.yaml" }, { PLENUM_CONFIG: "b.yaml" })).name).toBe("flag");
});

test.each([
  ["unknown key, near miss", "prot: 1", ['plenum.config.yaml:1:1  prot: unknown option; did you mean "port"?']],
  [
    "unknown key in camel case",
    "limits:\n  drainMs: 1",
    ['plenum.config.yaml:2:3  limits.drainMs: unknown option; did you mean "drain_ms"?'],
  ],
  [
    "unknown key, none near",
    "log:\n  zebra: 1",
    ["plenum.config.yaml:2:3  log.zebra: unknown option; known here: level, format"],
  ],
  [
    "wrong type",
    "limits:\n  queue: many",
    ['plenum.config.yaml:2:10  limits.queue: expected a whole number from 0 to 1000000, got "many"'],
  ],
  ["out of range", "port: 70000", ["plenum.config.yaml:1:7  port: expected a whole number from 0 to 65535, got 70000"]],
  ["a fraction", "port: 1.5", ["plenum.config.yaml:1:7  port: expected a whole number from 0 to 65535, got 1.5"]],
  [
    "wrong word",
    "log:\n  level: loud",
    ['plenum.config.yaml:2:10  log.level: expected one of trace, debug, info, warn, error, fatal, silent, got "loud"'],
  ],
  [
    "several at once",
    "port: x\ninsecure_open: maybe",
    [
      'plenum.config.yaml:1:7  port: expected a whole number from 0 to 65535, got "x"',
      'plenum.config.yaml:2:16  insecure_open: expected true or false, got "maybe"',
    ],
  ],
  [
    "a missing field of a token",
    `auth:\n  tokens:\n    - { principal: ada, scopes: [read] }`,
    [
      "plenum.config.yaml:3:7  auth.tokens[0].token_sha256 is missing: expected the SHA-256 of the token, 64 hex digits in lower case (`plenum tokens create --for-config` makes both)",
    ],
  ],
  [
    "a token in place of its hash, not repeated",
    `auth:\n  tokens:\n    - { principal: ada, scopes: [read], token_sha256: plenum_secret }`,
    [
      "plenum.config.yaml:3:55  auth.tokens[0].token_sha256: expected the SHA-256 of the token, 64 hex digits in lower case (`plenum tokens create --for-config` makes both)",
    ],
  ],
  [
    "a wrong duration",
    "embedded: { keep_alive: soon }",
    [
      'plenum.config.yaml:1:25  embedded.keep_alive: expected a duration such as "30m", milliseconds, or -1 for never unloaded, got "soon"',
    ],
  ],
  [
    "an unknown setting of a model",
    "embedded:\n  models:\n    a.gguf:\n      alias: b",
    ['plenum.config.yaml:4:7  embedded.models.a.gguf.alias: unknown option; did you mean "aliases"?'],
  ],
  ["not a mapping", "- a", ['plenum.config.yaml:1:1  expected a mapping of options, such as "port: 7411"']],
  ["a key twice", "port: 1\nport: 2", ["plenum.config.yaml:2:1  Map keys must be unique"]],
  [
    "a section that is a text",
    "limits: none",
    ['plenum.config.yaml:1:9  limits: expected a mapping of options, got "none"'],
  ],
])("refuses with its place: %s", async (_name, text, lines) => {
  expect(await mistakesOf(text)).toEqual(lines);
});

test("refuses YAML that does not parse with its place", async () => {
  const [line] = await mistakesOf("name: [a\nport: 1\n");
  expect(line).toMatch(/^plenum\.config\.yaml:\d+:\d+ {2}\S/);
});

test("names the flag or variable that set a wrong value", async () => {
  const expected = "expected a whole number from 0 to 65535";
  expect(await mistakesOf("name: a", { port: "abc" })).toEqual([`--port  port: ${expected}, got "abc"`]);
  expect(await mistakesOf(undefined, {}, { PLENUM_PORT: "-1" })).toEqual([`PLENUM_PORT  port: ${expected}, got "-1"`]);
});

test("refuses a named file that is not there", async () => {
  expect(await mistakesOf(undefined, { config: "no.yaml" })).toEqual(["--config  there is no file no.yaml"]);
  expect(await mistakesOf(undefined, {}, { PLENUM_CONFIG: "no.yaml" })).toEqual([
    "PLENUM_CONFIG  there is no file no.yaml",
  ]);
});

test("refuses the same token twice", async () => {
  const token = `    - { principal: ada, token_sha256: ${hash}, scopes: [read] }\n`;
  expect(await mistakesOf(`auth:\n  tokens:\n${token}${token}`)).toEqual([
    "plenum.config.yaml:4:39  auth.tokens[1].token_sha256: this token is listed twice",
  ]);
});

test.each([
  ["every network", { host: "0.0.0.0" }, "0.0.0.0"],
  ["every network by IPv6", { host: "::" }, "::"],
  ["a name", { host: "box.local" }, "box.local"],
  ["this machine", {}, undefined],
  ["localhost", { host: "localhost" }, undefined],
  ["NNRP for every network", { nnrp: ["tcp://localhost:0", "tcp://0.0.0.0:7412"] }, "tcp://0.0.0.0:7412"],
  ["NNRP at a name", { nnrp: ["ws://box.local:7412/nnrp"] }, "ws://box.local:7412/nnrp"],
  ["NNRP for this machine", { nnrp: ["tcp://127.0.0.1:7412", "unix:///run/plenum.sock"] }, undefined],
])("what other machines can reach: %s", async (_name, flags: ConfigFlags, address) => {
  expect(exposedAddress(await load("", flags))).toBe(address);
});

test("trusted proxies are addresses and ranges of them", async () => {
  const proxies = ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"];
  expect((await load(`trusted_proxies: ${JSON.stringify(proxies)}`)).trustedProxies).toEqual(proxies);
  for (const wrong of ["10.0.0.0/33", "10.0.0.0/8/8", "::1/129", "proxy.example", "10.0.0.1/"]) {
    expect(await mistakesOf(`trusted_proxies: [${JSON.stringify(wrong)}]`)).toEqual([
      `plenum.config.yaml:1:19  trusted_proxies[0]: expected an address or a CIDR range such as 192.168.0.0/16, got "${wrong}"`,
    ]);
  }
});

test.each([["nnrp://127.0.0.1:1"], ["quic://127.0.0.1:1"], ["127.0.0.1:7412"], ["unix://x"]])(
  "listens for NNRP at no address like %s",
  async (address) => {
    const [mistake] = await mistakesOf("", { nnrp: [address] });
    expect(mistake).toBe(
      "--nnrp  nnrp.listen[0]: expected an address such as tcp://127.0.0.1:7412, ws://127.0.0.1:7413/nnrp or " +
        `unix:///run/plenum.sock, got "${address}"`,
    );
  },
);

test("addresses with TLS need a certificate and its key, whose files count from the configuration's folder", async () => {
  const listen = "nnrp:\n  listen: ['tcp://127.0.0.1:0', 'tls://127.0.0.1:0', 'wss://127.0.0.1:0/nnrp']\n";
  expect(await mistakesOf(listen)).toEqual([
    expect.stringMatching(/^plenum.config.yaml:\d+:\d+ {2}nnrp\.listen\[1\]: this address needs tls.cert and tls.key/),
  ]);
  expect(await mistakesOf(`${listen}tls: { cert: a.pem }\n`)).toEqual([expect.stringContaining("tls.key is missing")]);
  const files = `${listen}tls: { cert: a.pem, key: ~/b.pem }\n`;
  expect(await load(files)).toMatchObject({ tls: { cert: join(folder, "a.pem"), key: join(folder, "b.pem") } });
  expect(await mistakesOf("", { nnrp: ["wss://127.0.0.1:0/"] })).toEqual([
    expect.stringMatching(/^--nnrp {2}nnrp\.listen\[0\]: this address/),
  ]);
});

test("a runtime's own root certificates are for NNRP alone", async () => {
  const runtime = (kind: string, url: string) => `runtimes: { far: { kind: ${kind}, url: '${url}', ca: ca.pem } }\n`;
  const { runtimes } = await load(runtime("nnrp", "nnrps://127.0.0.1:1"));
  expect(runtimes).toMatchObject([{ ca: join(folder, "ca.pem") }]);
  expect(await mistakesOf(runtime("vllm", "https://127.0.0.1:1"))).toEqual([
    expect.stringContaining("runtimes.far.ca: expected no `ca`"),
  ]);
});

test("an empty section is an absent one", async () => {
  expect(await load("auth:\nlimits:\n  queue:\n")).toMatchObject({ auth: { tokens: [] }, limits: { queue: 512 } });
  expect((await load("# nothing\n")).port).toBe(7411);
});

test.each([
  ["80%", 0.8],
  ["12GiB", 12 * 2 ** 30],
  ["1.5GB", 1.5e9],
  [2_000_000_000, 2e9],
])("memory budget %j", (written, expected) => {
  expect(shareOrBytes(written)).toBe(expected);
});

test.each([["0%"], ["101%"], ["12"], ["12 GiB"], ["-1GB"], ["lots"]])("no memory budget: %j", (written) => {
  expect(() => shareOrBytes(written)).toThrow(RangeError);
});
