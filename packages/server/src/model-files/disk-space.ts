import { statfs } from "node:fs/promises";
import { CoreError } from "@plenum/core";

/** Bytes that stay free beside the files. */
const spareBytes = 16 * 1024 * 1024;

/** @throws CoreError insufficient-storage with the bytes that are free and those that are needed. */
export async function requireSpace(folder: string, neededBytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const freeBytes = bavail * bsize;
  if (freeBytes < neededBytes + spareBytes) throw noSpace(freeBytes, neededBytes + spareBytes);
}

function noSpace(freeBytes: number, neededBytes: number): CoreError {
  const mebibytes = (bytes: number) => Math.ceil(bytes / (1024 * 1024));
  return new CoreError(
    "insufficient-storage",
    `The files need ${mebibytes(neededBytes)} MiB in the models folder, and ${mebibytes(freeBytes)} MiB are free: make ` +
      "room, or name another folder (`models` in the configuration, --models).",
    { limit: freeBytes, requested: neededBytes },
  );
}

/** A full disk as the problem that it is; everything else as it was. */
export async function asStorageProblem(error: unknown, folder: string, neededBytes: number): Promise<unknown> {
  const isFull = error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
  if (!isFull) return error;
  const { bavail, bsize } = await statfs(folder);
  return noSpace(bavail * bsize, neededBytes);
}
