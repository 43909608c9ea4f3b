import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { forkEngine } from "../fork-engine.ts";
import { sourceOrBuilt } from "../source-or-built.ts";
import { type GpuBuild, packageFolder, packagesOf } from "./builds.ts";

/** What the child says. */
export type ProbeMessage =
  | { readonly devices: readonly string[]; readonly memoryBytes: number; readonly freeBytes: number }
  | { readonly problem: string };

/** What a build sees on this machine. */
export type GpuProbe =
  | {
      readonly loads: true;
      /** Names of the GPUs, at least one. */
      readonly devices: readonly string[];
      /** Of all of them together. */
      readonly memoryBytes: number;
      readonly freeBytes: number;
    }
  /** `reason` has no full stop at its end. */
  | { readonly loads: false; readonly reason: string };

/** A driver that wakes its GPU takes some seconds. */
const timeoutMs = 30_000;

/**
 * Tries a build in a process of its own: nothing of it can hurt this one.
 * @param options.signal ends the try
 * @param options.timeoutMs milliseconds. @default 30000
 * @returns never rejects but with the signal's reason
 */
export async function probeBuild(
  build: GpuBuild,
  options: { readonly signal?: AbortSignal; readonly timeoutMs?: number } = {},
): Promise<GpuProbe> {
  const { signal } = options;
  const message = await askChild(build, signal, options.timeoutMs ?? timeoutMs);
  signal?.throwIfAborted();
  if (!("problem" in message)) {
    if (message.devices.length > 0) return { loads: true, ...message };
    return { loads: false, reason: `${build.kind} finds no GPU` };
  }
  const missing = await missingLibraries(build);
  if (missing.length === 0) return { loads: false, reason: message.problem.replace(/\.$/, "") };
  return { loads: false, reason: `this machine lacks ${missing.join(", ")}` };
}

function askChild(build: GpuBuild, signal: AbortSignal | undefined, limitMs: number): Promise<ProbeMessage> {
  return new Promise((resolve) => {
    const child = forkEngine(sourceOrBuilt("./probe-child", import.meta.url), { build, contextTokens: 0 });
    child.stdout?.resume();
    child.stderr?.resume();
    const end = (message: ProbeMessage) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      child.kill("SIGKILL");
      resolve(message);
    };
    const abort = () => end({ problem: "stopped" });
    const timer = setTimeout(() => end({ problem: `no answer within ${limitMs / 1000} s` }), limitMs);
    child.once("message", (message: ProbeMessage) => end(message));
    child.once("error", (error) => end({ problem: error.message }));
    child.once("exit", (code, by) => end({ problem: `it ended its process (${by ?? `exit code ${code}`})` }));
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Shared libraries that the build's GPU part needs and that this machine does not have; only Linux can tell. */
async function missingLibraries({ kind, folder }: GpuBuild): Promise<readonly string[]> {
  const name = packagesOf(kind)?.names[0];
  if (process.platform !== "linux" || name === undefined) return [];
  try {
    const bins = join(packageFolder(folder, name), "bins");
    const files = await readdir(bins, { recursive: true });
    const library = files.find((file) => file.endsWith(`libggml-${kind}.so`));
    if (library === undefined) return [];
    const { stdout } = await promisify(execFile)("ldd", [join(bins, library)], { timeout: 5_000 });
    return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].flatMap(([, missing]) => missing ?? []);
  } catch {
    return [];
  }
}
