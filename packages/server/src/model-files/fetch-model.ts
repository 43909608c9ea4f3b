import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { CoreError, type TaskProgress } from "@plenum/core";
import { requireSpace } from "./disk-space.ts";
import { type Downloaded, type DownloadOptions, download } from "./download.ts";
import { DownloadError } from "./download-error.ts";
import { sizeOf } from "./model-file.ts";
import { type ModelOrigin, readOrigin, writeOrigin } from "./model-origin.ts";
import { placePart } from "./part-file.ts";
import { type RemoteFile, request } from "./remote-file.ts";

export interface FetchOptions {
  readonly onProgress: (progress: TaskProgress) => void;
  readonly signal: AbortSignal;
  /** For tests. */
  readonly timeouts?: Pick<DownloadOptions, "connectTimeoutMs" | "stallTimeoutMs" | "retryDelayMs">;
}

/** A file and the place where it belongs. */
export interface WantedFile extends RemoteFile {
  /** Absolute, in the models folder. */
  readonly path: string;
}

export interface FetchedModel {
  /** Of the first file. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Of each file, in order. */
  readonly sha256: readonly string[];
}

/**
 * Fetches the files of one model and gives them their names once all are whole and verified. What is there already is not
 * fetched again.
 * @param source key that is remembered as the origin
 * @throws CoreError conflict, insufficient-storage, not-found, backend-unavailable, backend-error; the signal's reason
 */
export async function fetchModel(
  source: string,
  files: readonly [WantedFile, ...WantedFile[]],
  options: FetchOptions,
): Promise<FetchedModel> {
  const [first] = files;
  const folder = dirname(first.path);
  await mkdir(folder, { recursive: true });
  const origin = await readOrigin(first.path);
  const present = await findPresent(source, files, origin, options.signal);
  if (present !== undefined) return present;
  await checkSpace(folder, files);

  const counter = countBytes(files, options.onProgress);
  const downloaded: Downloaded[] = [];
  for (const file of files) {
    const got = await downloadOne(file, counter.stepOf(file), options);
    counter.finish(got.sizeBytes);
    downloaded.push(got);
  }
  options.signal.throwIfAborted();
  options.onProgress({ done: counter.done, total: counter.done, unit: "bytes", step: "placing" });
  const etag = downloaded[0]?.etag;
  await writeOrigin(first.path, {
    source,
    files: downloaded.map(({ sizeBytes, sha256 }, index) => ({
      name: basename(files[index]?.path ?? ""),
      sizeBytes,
      sha256,
    })),
    ...(etag !== undefined && { etag }),
    placedAt: new Date().toISOString(),
  });
  // The first file last: a model is seen by it, and whole then.
  for (const { path } of files.toReversed()) await placePart(partOf(path), path);
  return { path: first.path, sizeBytes: counter.done, sha256: downloaded.map(({ sha256 }) => sha256) };
}

const partOf = (path: string): string => `${path}.part`;

/** What is in place already. @throws CoreError conflict when a name is taken by something else. */
async function findPresent(
  source: string,
  files: readonly [WantedFile, ...WantedFile[]],
  origin: ModelOrigin | undefined,
  signal: AbortSignal,
): Promise<FetchedModel | undefined> {
  const sizes = await Promise.all(files.map(({ path }) => sizeOf(path)));
  if (sizes.every((size) => size === undefined)) return undefined;
  const sizeBytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  if (origin === undefined) {
    const sha256 = await hashesOfSame(files, sizes, signal);
    if (sha256 === undefined) throw taken(files[0].path);
    return { path: files[0].path, sizeBytes, sha256 };
  }
  if (origin.source !== source) throw taken(files[0].path);
  const isWhole = files.every(({ path }, index) => {
    const known = origin.files[index];
    return known !== undefined && known.name === basename(path) && known.sizeBytes === sizes[index];
  });
  if (!isWhole || !(await isCurrent(files, origin, signal))) return undefined;
  return { path: files[0].path, sizeBytes, sha256: origin.files.map(({ sha256 }) => sha256) };
}

/** Hashes of files that somebody put there, when they are the wanted ones. */
async function hashesOfSame(
  files: readonly WantedFile[],
  sizes: readonly (number | undefined)[],
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const hashes: string[] = [];
  for (const [index, { path, sha256, sizeBytes }] of files.entries()) {
    if (sha256 === undefined || (sizeBytes ?? sizes[index]) !== sizes[index]) return undefined;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, signal })) hash.update(chunk);
    if (hash.digest("hex") !== sha256) return undefined;
    hashes.push(sha256);
  }
  return hashes;
}

/** Whether the source still has what was placed: by the hashes that it tells, else by the entity tag. */
async function isCurrent(
  files: readonly [WantedFile, ...WantedFile[]],
  { files: known, etag }: ModelOrigin,
  signal: AbortSignal,
): Promise<boolean> {
  if (files.every(({ sha256 }) => sha256 !== undefined)) {
    return files.every(({ sha256 }, index) => sha256 === known[index]?.sha256);
  }
  if (etag === undefined) return false;
  try {
    const answer = await request(files[0], { headers: { "if-none-match": etag }, signal });
    await answer.body?.cancel();
    return answer.status === 304 || answer.headers.get("etag") === etag;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

async function checkSpace(folder: string, files: readonly WantedFile[]): Promise<void> {
  const missing = await Promise.all(
    files.map(async ({ path, sizeBytes = 0 }) => Math.max(0, sizeBytes - ((await sizeOf(partOf(path))) ?? 0))),
  );
  await requireSpace(
    folder,
    missing.reduce((sum, bytes) => sum + bytes, 0),
  );
}

function countBytes(files: readonly WantedFile[], onProgress: (progress: TaskProgress) => void) {
  const known = files.map(({ sizeBytes }) => sizeBytes);
  const total = known.every((size) => size !== undefined)
    ? known.reduce<number>((sum, size) => sum + (size ?? 0), 0)
    : undefined;
  let finished = 0;
  return {
    get done(): number {
      return finished;
    },
    finish(bytes: number): void {
      finished += bytes;
    },
    stepOf: (file: WantedFile) => (doneBytes: number, totalBytes: number | undefined) => {
      const all = total ?? (files.length === 1 ? totalBytes : undefined);
      onProgress({
        done: finished + doneBytes,
        ...(all !== undefined && { total: all }),
        unit: "bytes",
        step: `pulling ${basename(file.path)}`,
      });
    },
  };
}

async function downloadOne(
  file: WantedFile,
  onBytes: DownloadOptions["onBytes"],
  { signal, timeouts }: FetchOptions,
): Promise<Downloaded> {
  try {
    return await download(file, partOf(file.path), { onBytes, signal, magic: "GGUF", ...timeouts });
  } catch (error) {
    if (error instanceof DownloadError) throw toProblem(error, file);
    throw error;
  }
}

function toProblem({ kind, status, message }: DownloadError, file: WantedFile): CoreError {
  const { host } = new URL(file.url);
  const name = basename(file.path);
  const what = `${name} could not be had from ${host} (${message})`;
  if (status === 404 || status === 410)
    return new CoreError("not-found", `${what}; look at the address.`, { param: "source" });
  if (status === 401 || status === 403)
    return new CoreError("backend-error", `${what}; it asks for a right that this service has not.`);
  if (kind === "broken")
    return new CoreError("backend-unavailable", `${what}; pull it again to go on where it stopped.`);
  return new CoreError("backend-error", `${what}; nothing was placed.`);
}

function taken(path: string): CoreError {
  const detail = `Another file named ${basename(path)} lies in the models folder already; delete that model, or move the file away.`;
  return new CoreError("conflict", detail, { param: "source" });
}
