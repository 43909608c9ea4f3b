import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, readdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CoreError } from "@plenum/core";
import { pinnedVersion } from "../library-version.ts";
import {
  availableKinds,
  buildFolder,
  enginesFolder,
  folderBytes,
  type GpuBuild,
  type GpuKind,
  type InstalledBuild,
  type Machine,
  packagesOf,
  problemOf,
} from "./builds.ts";

export interface InstallOptions {
  readonly kind: GpuKind;
  /** Folder of state. */
  readonly home: string;
  /** Called some times a second with what is on the disk; the total is an estimate that is never passed. */
  readonly onProgress?: (progress: { readonly doneBytes: number; readonly totalBytes: number }) => void;
  /** Stops it; nothing of it is left. */
  readonly signal?: AbortSignal;
  /** Machine to install for, and the program in npm's place: for tests. */
  readonly machine?: Machine;
  readonly npm?: readonly string[];
}

const progressMs = 250;
/** Kept of npm's messages. */
const mostErrorCharacters = 4_096;

/**
 * Installs the build that belongs to the library, with npm, beside its final folder, and puts it there whole.
 * @returns the build; the one that is there already, when its files are sound
 * @throws CoreError invalid-request where the kind does not exist, backend-error when npm fails or the disk is too full;
 *   the signal's reason
 */
export async function installBuild(options: InstallOptions): Promise<GpuBuild> {
  const { kind, home, signal, machine = process } = options;
  const packages = packagesOf(kind, machine);
  if (packages === undefined) throw new CoreError("invalid-request", missingKind(kind, machine), { param: "kind" });
  const build = { kind, version: pinnedVersion, folder: buildFolder(home, kind) };
  if ((await problemOf(build, machine)) === undefined) return build;
  await mkdir(enginesFolder(home), { recursive: true });
  await removeLeftovers(home);
  await requireRoom(home, packages.sizeBytes);
  const temporary = join(enginesFolder(home), `.adding-${kind}-${process.pid}`);
  try {
    await mkdir(temporary);
    // A package of its own: npm then looks for no other one above, whose settings would hold here, too.
    await writeFile(join(temporary, "package.json"), '{ "private": true }\n');
    await runNpm(temporary, packages, options);
    signal?.throwIfAborted();
    const problem = await problemOf({ ...build, folder: temporary }, machine);
    if (problem !== undefined) throw failed(kind, problem);
    await rm(build.folder, { recursive: true, force: true });
    await rename(temporary, build.folder);
    return build;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Removes a build from the disk. A service that runs it keeps what it has loaded. */
export async function removeBuild({ folder }: Pick<InstalledBuild, "folder">): Promise<void> {
  // First out of sight, in one step: a half removed build is none.
  const hidden = join(dirname(folder), `.removing-${process.pid}`);
  await rename(folder, hidden);
  await rm(hidden, { recursive: true, force: true });
}

/** Why a kind can't be had, in one sentence. */
export function missingKind(kind: string, machine: Machine = process): string {
  const { platform, arch } = machine;
  const kinds = availableKinds(machine);
  if (kinds.length > 0) return `There is no GPU build "${kind}"; there are ${kinds.join(" and ")}.`;
  return `There is no GPU build ${kind} for this machine (${platform} ${arch}); models run on the processor.`;
}

async function runNpm(
  folder: string,
  packages: { readonly names: readonly string[]; readonly sizeBytes: number },
  options: InstallOptions,
) {
  const { kind, onProgress, signal, npm = npmCommand() } = options;
  const wanted = packages.names.map((name) => `@node-llama-cpp/${name}@${pinnedVersion}`);
  // Nothing of a package is run while it is installed.
  const flags = ["--ignore-scripts", "--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
  const [program = "npm", ...first] = npm;
  const child = spawn(program, [...first, "install", ...flags, ...wanted], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    // Windows starts npm.cmd by its shell only; all words are ours.
    shell: process.platform === "win32",
  });
  const timer = setInterval(async () => {
    const doneBytes = Math.min(await folderBytes(folder), packages.sizeBytes);
    if (child.exitCode === null) onProgress?.({ doneBytes, totalBytes: packages.sizeBytes });
  }, progressMs);
  const kill = () => child.kill("SIGKILL");
  signal?.addEventListener("abort", kill, { once: true });
  if (signal?.aborted) kill();
  try {
    const { code, errors } = await ended(child);
    signal?.throwIfAborted();
    if (code !== 0) throw failed(kind, reasonOf(errors));
    onProgress?.({ doneBytes: packages.sizeBytes, totalBytes: packages.sizeBytes });
  } finally {
    clearInterval(timer);
    signal?.removeEventListener("abort", kill);
  }
}

function ended(child: ChildProcess): Promise<{ readonly code: number | null; readonly errors: string }> {
  return new Promise((resolve) => {
    let errors = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-mostErrorCharacters);
    });
    child.once("error", (error) => resolve({ code: null, errors: `npm can't be started (${error.message})` }));
    child.once("close", (code) => resolve({ code, errors }));
  });
}

/** npm as it was called, when it calls us; else the one on the PATH. */
function npmCommand(): readonly string[] {
  const path = process.env["npm_execpath"];
  return path !== undefined && /npm-cli\.c?js$/.test(path) ? [process.execPath, path] : ["npm"];
}

/** What npm says of its failure, in a line: after its codes comes the sentence. */
function reasonOf(errors: string): string {
  const lines = errors.split("\n").map((line) => line.replace(/^npm (error|ERR!) ?/, "").trim());
  const told = lines.filter((line) => line !== "" && !/^(code|errno|syscall|A complete log)\b/.test(line));
  return told.slice(0, 2).join(" ") || "npm failed without a word.";
}

function failed(kind: GpuKind, reason: string): CoreError {
  return new CoreError("backend-error", `The GPU build ${kind} could not be installed: ${reason}`);
}

/** Folders of installations and removals that were killed. */
async function removeLeftovers(home: string): Promise<void> {
  for (const name of await readdir(enginesFolder(home))) {
    const pid = /^\.(?:adding-.+|removing)-(\d+)$/.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) {
      await rm(join(enginesFolder(home), name), { recursive: true, force: true });
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return pid !== process.pid;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

async function requireRoom(home: string, neededBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(home);
  if (bavail * bsize > neededBytes) return;
  const megabytes = (bytes: number) => Math.round(bytes / 1e6);
  const detail = `The build takes about ${megabytes(neededBytes)} MB and ${megabytes(bavail * bsize)} MB are free in ${home}.`;
  throw new CoreError("backend-error", detail);
}
