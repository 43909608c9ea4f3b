import { type ChildProcess, fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { GpuBuild } from "./gpu/builds.ts";
import { sourceOrBuilt } from "./source-or-built.ts";

/** The GPU build that a child is to run. */
export interface ChildGpu {
  readonly build: GpuBuild;
  /** Tokens that the context will hold in all, for which memory is left on the GPU; 0: none. */
  readonly contextTokens: number;
}

/**
 * Forks a program of this room with a quiet, fixed environment.
 * @param gpu absent: the library's processor build
 */
export function forkEngine(entry: URL, gpu?: ChildGpu): ChildProcess {
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, ...environment } = process.env;
  return fork(fileURLToPath(entry), [], {
    execArgv: [
      // It makes little garbage; what V8 would reserve for more stays with the model.
      "--max-semi-space-size=1",
      // TypeScript needs the loader; resolved here, since the child may run in any folder.
      ...(entry.pathname.endsWith(".ts") ? ["--conditions=@plenum/source", "--import", typeScriptLoader()] : []),
      ...(gpu === undefined ? [] : ["--import", gpuModule(gpu)]),
    ],
    env: {
      ...environment,
      // One pool thread: with more, the kernel puts compute threads onto one core to spin against each other.
      UV_THREADPOOL_SIZE: "1",
      // glibc gives large pieces that loading took back to the system, instead of keeping them for later ones.
      MALLOC_ARENA_MAX: "1",
      MALLOC_MMAP_THRESHOLD_: "131072",
      NODE_LLAMA_CPP_SKIP_DOWNLOAD: "true",
    },
    serialization: "advanced",
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
}

function typeScriptLoader(): string {
  return pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href;
}

function gpuModule({ build, contextTokens }: ChildGpu): string {
  const { kind, folder } = build;
  const parameters = new URLSearchParams({ kind, folder, contextTokens: String(contextTokens) });
  return `${sourceOrBuilt("./gpu/child-module", import.meta.url)}?${parameters}`;
}
