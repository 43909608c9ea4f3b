import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Check, checklist, verdict } from "../doctor/check.ts";
import { judge, vulkanGpus } from "../doctor/gpu.ts";
import { checkNode } from "../doctor/machine.ts";
import { runProgram } from "../program.ts";
import { type FakeOptions, fakeSurroundings, json, problem } from "../testing/fake-surroundings.ts";

const timeoutMs = 30_000;
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-doctor-"));
});
afterEach(() => rm(home, { recursive: true }));

async function doctor(flags: readonly string[] = [], options: FakeOptions = {}, file = "port: 0\n") {
  const config = join(home, "plenum.config.yaml");
  await writeFile(config, file);
  const around = fakeSurroundings({ ...options, env: { HOME: home, PLENUM_HOME: home, ...options.env } });
  const code = await runProgram(["doctor", "--config", config, "--json", ...flags], around);
  const report: { readonly ok: boolean; readonly checks: readonly Check[] } = JSON.parse(around.written.output);
  return { code, ok: report.ok, of: (id: string) => report.checks.find((check) => check.id === id), config };
}

const service = {
  "GET /.well-known/lmsp": json({ lmsp_version: "1.0", service: { name: "studio", software: { version: "0.1.0" } } }),
  "GET /lmsp/v1/models": json({
    data: [
      { id: "a:1b", state: "loaded" },
      { id: "b:1b", state: "available" },
    ],
    next_cursor: null,
  }),
};

test("without a service: what is here, and how to begin", { timeout: timeoutMs }, async () => {
  const { code, ok, of, config } = await doctor();
  expect([code, ok]).toEqual([0, true]);
  expect(of("configuration")).toMatchObject({ state: "ok", detail: `Configuration: ${config} is valid` });
  expect(of("service")).toMatchObject({ state: "note", todo: ["plenum serve"] });
  expect(of("engine")).toMatchObject({ state: "ok" });
  expect(of("models")).toMatchObject({ state: "note", detail: `Models: none in ${join(home, "models")}` });
  expect(of("tokens")).toMatchObject({ state: "ok" });
  expect(of("disk")?.data).toMatchObject({ home, free_bytes: expect.any(Number) });
});

test("with a service: its name, version and models", { timeout: timeoutMs }, async () => {
  const { code, of } = await doctor(["--url", "http://127.0.0.1:9"], { service });
  expect(code).toBe(0);
  expect(of("service")).toMatchObject({
    state: "ok",
    detail: 'Service: "studio", Plenum 0.1.0, at http://127.0.0.1:9, models: 2, loaded: a:1b',
  });
});

test("a service that wants a token, and one of another version", { timeout: timeoutMs }, async () => {
  const other = { lmsp_version: "1.0", service: { name: "x", software: { version: "9.0.0" } } };
  const { of } = await doctor(["--url", "http://127.0.0.1:9"], {
    service: {
      "GET /.well-known/lmsp": json(other),
      "GET /lmsp/v1/models": problem("unauthorized", 401, "A token is needed."),
    },
  });
  expect(of("service")).toMatchObject({
    state: "note",
    todo: ["start it again, to have version 0.1.0", "PLENUM_TOKEN=… plenum doctor"],
  });
});

test("a service that was named and does not answer must be seen to", { timeout: timeoutMs }, async () => {
  const { code, of } = await doctor(["--url", "http://127.0.0.1:9"]);
  expect(code).toBe(1);
  expect(of("service")).toMatchObject({ state: "problem", detail: expect.stringContaining("http://127.0.0.1:9") });
});

test("our port is taken by another program", { timeout: timeoutMs }, async () => {
  const other = createServer((socket) => socket.on("error", () => undefined).end("no web server\n"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const port = portOf(other);
  const { code, of } = await doctor([], {}, `port: ${port}\n`);
  expect(code).toBe(1);
  expect(of("service")).toMatchObject({
    state: "problem",
    detail: `Service: not running, and another program listens on port ${port}`,
    todo: [`plenum serve --port ${port + 1}   (or stop the other program)`],
  });
  other.close();
});

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

test("a wrong configuration: the field, and everything else is looked at still", { timeout: timeoutMs }, async () => {
  const { code, of, config } = await doctor([], {}, "prot: 1\n");
  expect(code).toBe(1);
  expect(of("configuration")).toMatchObject({
    state: "problem",
    lines: [`${config}:1:1  prot: unknown option; did you mean "port"?`],
  });
  expect(of("models")?.data).toMatchObject({ folder: join(home, "models") });
});

const token = (expires: string) =>
  `{ principal: ada, token_sha256: ${"a".repeat(64)}, scopes: [read], expires_at: "${expires}" }`;

test.each([
  ["none yet, of which the first start makes one", "", "ok", 0],
  ["open to the network on purpose", "insecure_open: true", "note", 0],
  ["a token", `auth: { tokens: [${token("2999-01-31T00:00:00Z")}] }`, "ok", 0],
  ["only an expired token", `auth: { tokens: [${token("2001-01-31T00:00:00Z")}] }`, "problem", 1],
])("tokens: %s", { timeout: timeoutMs }, async (_name, line, state, exit) => {
  const { code, of } = await doctor([], {}, `port: 0\nhost: 0.0.0.0\n${line}\n`);
  expect(of("tokens")?.state).toBe(state);
  expect(code).toBe(exit);
});

test("a model file that can't be used must be seen to", { timeout: timeoutMs }, async () => {
  await mkdir(join(home, "models"));
  await writeFile(join(home, "models", "broken-1b.gguf"), "this is no model");
  const { code, of } = await doctor();
  expect(code).toBe(1);
  expect(of("models")).toMatchObject({
    state: "problem",
    lines: ["broken:1b: broken-1b.gguf is no GGUF file. Fetch it again or remove it."],
    data: { files: [{ model: "broken:1b", fits: false }] },
  });
});

test.each([
  ["20.18.9", "problem"],
  ["20.19.0", "ok"],
  ["24.1.0", "ok"],
])("Node %s: %s", (node, state) => {
  expect(checkNode("1.2.3", node).state).toBe(state);
});

const none = { names: [], kind: "vulkan" } as const;
const nvidia = { names: ["NVIDIA RTX"], kind: "cuda" } as const;
const build = { kind: "cuda", version: "1.0.0", folder: "/b", sizeBytes: 1 } as const;
const loads = { build, probe: { loads: true, devices: ["NVIDIA RTX"], memoryBytes: 2e9, freeBytes: 1e9 } } as const;
const fails = { build, probe: { loads: false, reason: "this machine lacks libcuda.so.1" } } as const;
const broken = { build: { ...build, problem: "It is of version 1.0.0." }, probe: undefined };
const both = ["cuda", "vulkan"] as const;

test.each([
  ["no GPU, no build", none, [], both, "auto", "ok", undefined],
  ["a GPU without a build", nvidia, [], both, "auto", "note", "plenum engine add cuda"],
  ["a GPU, and no build exists here", nvidia, [], [], "auto", "ok", undefined],
  ["a build that loads", nvidia, [loads], both, "auto", "ok", undefined],
  ["a build that loads and is switched off", nvidia, [loads], both, "off", "ok", undefined],
  ["a build that does not load", none, [fails], both, "auto", "note", "or do without: plenum engine remove cuda"],
  ["an old build", nvidia, [broken], both, "auto", "note", "plenum engine add cuda"],
  ["a build asked for and not installed", nvidia, [loads], both, "vulkan", "problem", "plenum engine add vulkan"],
] as const)("GPU: %s", (_name, seen, tried, available, setting, state, todo) => {
  const judged = judge(seen, tried, available, setting);
  expect(judged.state).toBe(state);
  if (todo === undefined) expect(judged.todo).toBeUndefined();
  else expect(judged.todo).toContain(todo);
});

test("GPUs of vulkaninfo, without the processor that draws", () => {
  const summary = `Devices:
========
GPU0:
	apiVersion         = 1.4.303
	deviceType         = PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
	deviceName         = AMD Radeon RX 7900 XTX (RADV NAVI31)
	driverID           = DRIVER_ID_MESA_RADV
GPU1:
	deviceType         = PHYSICAL_DEVICE_TYPE_CPU
	deviceName         = llvmpipe (LLVM 19.1.0, 256 bits)
`;
  expect(vulkanGpus(summary)).toEqual(["AMD Radeon RX 7900 XTX (RADV NAVI31)"]);
  expect(vulkanGpus("")).toEqual([]);
});

const checks: readonly Check[] = [
  { id: "a", state: "ok", detail: "fine\u001b[31m" },
  { id: "b", state: "note", detail: "look", lines: ["more"] },
  { id: "c", state: "problem", detail: "bad", todo: ["do this"] },
];
const plain = "ok fine[31m\n!  look\n     more\nx  bad\n     -> do this\n";

test.each([
  ["a terminal", true, {}, "✔ fine[31m\n! look\n    more\n✖ bad\n    → do this\n"],
  ["a pipe", false, {}, plain],
  ["NO_COLOR", true, { NO_COLOR: "1" }, plain],
])("the list on %s", (_name, isTerminal, env, text) => {
  expect(checklist(checks, fakeSurroundings({ isTerminal, env }))).toBe(text);
});

test("ends with what is to be done", () => {
  expect(verdict(checks)).toBe("One thing must be done.\n");
  expect(verdict([])).toBe("Nothing must be done.\n");
});
