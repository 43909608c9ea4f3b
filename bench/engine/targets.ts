import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "../../tests/peers/start-peer.ts";
import { treeOf } from "./processes.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A server under measurement. */
export interface Target {
  readonly name: string;
  readonly url: string;
  /** Name of the model at its OpenAI door. */
  readonly model: string;
  /** Requests that hold a sequence of the engine now. */
  running(): Promise<number>;
  /** Its processes; empty where the server was started by somebody else. */
  pids(): readonly number[];
  stop(): Promise<void>;
}

/** The same for both. */
export interface EngineSettings {
  /** Path of a GGUF file. */
  readonly modelFile: string;
  /** Compute threads. */
  readonly threads: number;
  /** Tokens of each sequence. */
  readonly contextTokens: number;
  /** Sequences at once. */
  readonly parallel: number;
}

/** The built product as a person would start it, with nothing left out of the path. */
export async function startPlenum(settings: EngineSettings): Promise<Target> {
  const command = join(root, "packages/cli/bin/plenum.mjs");
  const home = await mkdtemp(join(tmpdir(), "plenum-bench-"));
  const models = join(home, "measured");
  const config = join(home, "plenum.config.yaml");
  await writeFile(config, yaml(settings));
  await symlinkInto(models, settings.modelFile);
  const flags = ["--port", "0", "--home", home, "--models", models, "--config", config, "--log-format", "json"];
  const child = spawn(process.execPath, [command, "serve", ...flags, "--no-starter-model", "--no-local-runtimes"], {
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PLENUM_"))),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await firstMatch(child, /(http:\/\/127\.0\.0\.1:\d+)/);
  const target = await describe("plenum", url, child);
  return {
    ...target,
    // A request counts until the engine's child has let go of it.
    running: async () => Number(/^plenum_running (\d+)$/m.exec(await readText(`${url}/metrics`))?.[1]),
    stop: async () => {
      await target.stop();
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** llama.cpp's own server on the same file, by the script that tests/README.md tells about. */
export async function startLlamaServer({
  modelFile,
  threads,
  contextTokens,
  parallel,
}: EngineSettings): Promise<Target> {
  const script = resolve(root, process.env["PLENUM_TEST_PEERS"] ?? "../shared/peers/start-llama-server.sh");
  if (!existsSync(script)) throw new Error(`There is no ${script}; set PLENUM_TEST_PEERS, or give --llama-server URL.`);
  const args = ["-t", String(threads), "-np", String(parallel), "-c", String(parallel * contextTokens), "--slots"];
  const child = spawn("bash", [script, await freePort(), modelFile, ...args], {
    env: { LLAMA_VENV: join(root, ".cache/llama-server"), ...process.env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return llamaServer(await firstMatch(child, /^(http:\/\/\S+)/), child);
}

/** llama-server, or Plenum, that runs already: must have the same model, threads, context and parallelism. */
export function runningLlamaServer(url: string): Promise<Target> {
  return llamaServer(url.replace(/\/+$/, ""));
}

async function llamaServer(url: string, child?: ChildProcess): Promise<Target> {
  return {
    ...(await describe("llama-server", url, child)),
    running: async () => {
      const slots: readonly { readonly is_processing: boolean }[] = JSON.parse(await readText(`${url}/slots`));
      return slots.filter((slot) => slot.is_processing).length;
    },
  };
}

async function describe(name: string, url: string, child?: ChildProcess): Promise<Omit<Target, "running">> {
  const ended = new Promise<void>((done) => (child === undefined ? done() : child.once("close", () => done())));
  const { data }: { data: readonly { readonly id: string }[] } = JSON.parse(await readText(`${url}/v1/models`));
  const [model] = data;
  if (model === undefined) throw new Error(`${name} has no model`);
  return {
    name,
    url,
    model: model.id,
    pids: () => (child?.pid === undefined ? [] : treeOf(child.pid)),
    stop: async () => {
      child?.kill("SIGTERM");
      await ended;
    },
  };
}

function yaml({ threads, contextTokens, parallel }: EngineSettings): string {
  return `embedded:\n  threads: ${threads}\n  parallel: ${parallel}\n  context_tokens: ${contextTokens}\n`;
}

async function symlinkInto(folder: string, file: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await symlink(resolve(file), join(folder, basename(file)));
}

function firstMatch(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((found, fail) => {
    child.once("exit", (code) => fail(new Error(`${child.spawnargs.join(" ")} ended with ${code}`)));
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        const match = pattern.exec(line)?.[1];
        if (match !== undefined) found(match);
      });
    }
  });
}

async function readText(url: string): Promise<string> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return answer.text();
}
