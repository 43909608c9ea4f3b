import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const command = join(root, "packages/cli/bin/plenum.mjs");

/** Catalog ids of the models that the tests run. */
export const chatModel = "smollm2:135m";
export const embeddingModel = "all-minilm-l6-v2";

/** The starter model, found by `npm test`; absent where no registry could be reached. */
export const starterModelFile =
  process.env["PLENUM_TEST_STARTER_MODEL"] ?? firstExisting("smollm2-135m-instruct-q4_1.gguf");
const testModels = resolve(root, process.env["PLENUM_TEST_MODELS"] ?? "../shared/models");
export const embeddingModelFile = join(testModels, "all-minilm-l6-v2-f16.gguf");

function firstExisting(name: string): string | undefined {
  return [join(root, ".cache/models", name)].find((path) => existsSync(path));
}

/** Why tests with a real model can't run; undefined when they can. */
export const skipReason =
  starterModelFile === undefined
    ? "the starter model could not be fetched"
    : existsSync(embeddingModelFile)
      ? undefined
      : `there is no ${embeddingModelFile}; set PLENUM_TEST_MODELS to the folder that holds it`;
if (skipReason !== undefined) console.error(`!!! TESTS WITH REAL MODELS ARE SKIPPED: ${skipReason}`);

export interface RunningService {
  readonly url: string;
  readonly process: ChildProcess;
  /** What it has written so far. */
  output(): string;
  /** Reads JSON from a path. */
  json(path: string, init?: RequestInit): Promise<{ readonly status: number; readonly body: Json }>;
  /** Reads one value of `/metrics`, without labels or with exactly these. */
  metric(name: string): Promise<number>;
  stop(): Promise<number | null>;
}

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes are looked into
export type Json = any;

export interface StartOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Files put into the models folder. Default: the starter and the embedding model. */
  readonly models?: readonly string[];
  /** False: does not wait until a model answers. */
  readonly waitUntilReady?: boolean;
}

/** Starts `plenum serve` as a person would, on a free port with a home of its own. */
export async function startService(options: StartOptions = {}): Promise<RunningService> {
  const home = await mkdtemp(join(tmpdir(), "plenum-e2e-"));
  const models = await mkdtemp(join(tmpdir(), "plenum-models-"));
  for (const file of options.models ?? [starterModelFile ?? "", embeddingModelFile]) {
    await symlink(file, join(models, file.split("/").at(-1) ?? ""));
  }
  const args = [
    "serve",
    "--port",
    "0",
    "--home",
    home,
    "--models",
    models,
    "--no-starter-model",
    "--no-local-runtimes",
    "--log-format",
    "json",
  ];
  const child = spawn(process.execPath, [command, ...args, ...(options.args ?? [])], {
    env: { ...cleanEnv(), ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const exited = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  const url = await waitFor(() => {
    if (child.exitCode !== null) throw new Error(`the service ended: ${text}`);
    return /(http:\/\/127\.0\.0\.1:\d+)/.exec(text)?.[1];
  }, 30_000);
  const service: RunningService = {
    url,
    process: child,
    output: () => text,
    async json(path, init) {
      const answer = await fetch(url + path, init);
      const body = await answer.text();
      return { status: answer.status, body: body === "" ? undefined : JSON.parse(body) };
    },
    async metric(name) {
      const page = await (await fetch(`${url}/metrics`)).text();
      const line = page.split("\n").find((candidate) => candidate.startsWith(`${name} `));
      return Number(line?.split(" ")[1] ?? Number.NaN);
    },
    async stop() {
      if (child.exitCode === null) child.kill("SIGTERM");
      const code = await exited;
      await rm(home, { recursive: true, force: true });
      await rm(models, { recursive: true, force: true });
      return code;
    },
  };
  if (options.waitUntilReady !== false) {
    await waitFor(async () => ((await fetch(`${url}/readyz`)).ok ? true : undefined), 60_000);
  }
  return service;
}

/** The environment without settings of the product. */
export function cleanEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith("PLENUM_") || name.startsWith("PLENUM_TEST")),
  );
}

/** Asks until there is an answer. */
export async function waitFor<T>(ask: () => T | undefined | Promise<T | undefined>, timeoutMs = 10_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > end) throw new Error(`nothing within ${timeoutMs} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** Prints a measured value where a reader of the test's output finds it. */
export function measured(what: string, value: string): void {
  console.log(`measured: ${what}: ${value}`);
}

export const post = (body: unknown, signal?: AbortSignal): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
  ...(signal ? { signal } : {}),
});

/** Bars the starter model's end tokens: an answer goes on until its limit. */
export const endless = { logit_bias: { 0: -100, 2: -100 } };

/** A prompt of about 1,000 tokens. */
export const longPrompt = `Summarise: ${"The history of rivers in Europe is long and full of trade, floods, mills and bridges. ".repeat(55)}`;
