import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { runProgram } from "../program.ts";
import { announcement } from "../serve/announce.ts";
import { stopOnSignal } from "../serve/stop-on-signal.ts";
import { fakeSurroundings } from "../testing/fake-surroundings.ts";

let home: string;

// The first to load the service waits for all of it, which on a busy machine takes longer than a test may.
beforeAll(async () => void (await import("@plenum/server")), 120_000);
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-serve-"));
});
afterEach(() => rm(home, { recursive: true }));

function start(...flags: readonly string[]) {
  const around = fakeSurroundings({ env: { HOME: home, PLENUM_LOG_LEVEL: "silent" } });
  const ended = runProgram(["serve", "--home", home, "--no-starter-model", ...flags], around);
  return { around, ended };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function addressIn(text: string): string {
  return text.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0] ?? "";
}

test("serves until it is told to stop, then lets go of its port", async () => {
  const { around, ended } = start("--port", "0");
  await until(() => around.written.output.includes("Ctrl-C"));
  const address = addressIn(around.written.output);
  expect((await fetch(`${address}/healthz`)).status).toBe(200);
  around.send("SIGTERM");
  expect(await ended).toBe(0);
  expect(around.written.errors).toBe(
    "\nStopping: running answers get 30 s to finish; Ctrl-C again ends them at once.\n",
  );
  await expect(fetch(`${address}/healthz`)).rejects.toThrow();
});

test("the same Ctrl-C told twice is one; a later one ends the process at once", () => {
  const stop = new AbortController();
  const exits: number[] = [];
  let now = 1000;
  const hear = stopOnSignal(stop, { exitNow: (code) => void exits.push(code) }, () => now);
  hear("SIGINT");
  expect(stop.signal.aborted).toBe(true);
  now += 20;
  hear("SIGINT");
  expect(exits).toEqual([]);
  now += 1000;
  hear("SIGINT");
  hear("SIGTERM");
  expect(exits).toEqual([130, 143]);
});

async function occupy(): Promise<{ readonly server: Server; readonly port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { server, port: address.port };
}

test("a port in use: one sentence with the flag that mends it", async () => {
  const { server, port } = await occupy();
  const { around, ended } = start("--port", String(port));
  expect(await ended).toBe(1);
  expect(around.written).toEqual({
    output: "",
    errors: `plenum: Port ${port} on 127.0.0.1 is in use: choose another one with --port (0: any free one), or stop what uses it.\n`,
  });
  server.close();
});

test("an address of another machine: one sentence", async () => {
  const { around, ended } = start("--port", "0", "--host", "192.0.2.1", "--insecure-open");
  expect(await ended).toBe(1);
  expect(around.written.errors).toBe(
    "plenum: This machine has no address 192.0.2.1: choose another one with --host.\n",
  );
});

test("a wrong configuration: its place, exit code 2", async () => {
  const file = join(home, "bad.yaml");
  await writeFile(file, "prot: 1\n");
  const { around, ended } = start("--config", file);
  expect(await ended).toBe(2);
  expect(around.written.errors).toBe(
    `plenum: the configuration can't be used.\n${file}:1:1  prot: unknown option; did you mean "port"?\n`,
  );
});

test("beyond this machine without a token: the first one is made and its file is told, then every request needs one", async () => {
  const { around, ended } = start("--host", "0.0.0.0", "--port", "0", "--no-local-runtimes");
  await until(() => around.written.output.includes("Ctrl-C"));
  expect(around.written.output).toContain(`The first token, with every right, is in ${join(home, "admin-token")}\n`);
  expect(around.written.output).not.toContain("plenum_");
  const models = `${addressIn(around.written.output)}/lmsp/v1/models`;
  const token = (await readFile(join(home, "admin-token"), "utf8")).trim();
  expect((await fetch(models)).status).toBe(401);
  expect((await fetch(models, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  around.send("SIGTERM");
  expect(await ended).toBe(0);
});

const facts = {
  server: {
    url: "http://127.0.0.1:7411",
    interfaces: [
      { kind: "lmsp", url: "http://127.0.0.1:7411/lmsp/v1" },
      { kind: "openai", url: "http://127.0.0.1:7411/v1" },
      { kind: "ollama", url: "http://127.0.0.1:7411" },
    ],
  },
  config: { models: "/home/ada/.plenum/models", name: "studio", embedded: { enabled: true } },
  version: "1.2.3",
};

test("says where it is, what to try and what comes next", () => {
  expect(
    announcement({ ...facts, model: "smollm2:135m", needsToken: false, command: "plenum" }),
  ).toBe(`Plenum 1.2.3 runs as "studio".

  LMSP    http://127.0.0.1:7411/lmsp/v1
  OpenAI  http://127.0.0.1:7411/v1
  Ollama  http://127.0.0.1:7411

Try it:
  curl http://127.0.0.1:7411/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"smollm2:135m","messages":[{"role":"user","content":"Say hello."}]}'

Next:
  plenum models                 what it can run
  plenum run smollm2:135m       chat in this terminal
  more models                   put GGUF files into /home/ada/.plenum/models
  Ctrl-C                        stop
`);
});

test("names no model and asks for a token where tokens are needed", () => {
  const text = announcement({ ...facts, model: undefined, needsToken: true, command: "npx plenum" });
  expect(text).toContain('-H "Authorization: Bearer $PLENUM_TOKEN"');
  expect(text).toContain('"model":"MODEL"');
});
