import { readdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { DigestedFile } from "./digests.ts";

/** A model's files as they were found; the path is that of the first, by which the engine finds the others. */
export interface ModelFile extends DigestedFile {
  /** Names of parts of a split model that are not there. Absent: none is missing. */
  readonly missingParts?: readonly string[];
}

const deepestFolder = 3;
/** Parts of a split model after the first. */
const laterPart = /-(?!00001)\d{5}-of-\d{5}\.gguf$/i;
const firstPart = /^(.*)-00001-of-(\d{5})(\.gguf)$/i;
/** More parts than any model has. */
const mostParts = 1000;

/**
 * GGUF files among the given paths, in the order of the paths and by name within a folder. What can't be read is left
 * out, but a file that is named itself is listed even when it is missing, so that the catalog can say so.
 */
export async function findModelFiles(paths: readonly string[]): Promise<readonly ModelFile[]> {
  const found = new Map<string, ModelFile>();
  for (const path of paths) {
    for (const file of await search(resolve(path), 0)) {
      if (!found.has(file.path)) found.set(file.path, file);
    }
  }
  return [...found.values()];
}

async function search(path: string, depth: number): Promise<readonly ModelFile[]> {
  const isModel = /\.gguf$/i.test(path) && !laterPart.test(path);
  let status: Awaited<ReturnType<typeof stat>>;
  try {
    status = await stat(path);
  } catch {
    return isModel && depth === 0 ? [{ path, sizeBytes: 0, modifiedMs: 0 }] : [];
  }
  if (status.isFile()) return isModel ? [await withParts(path, status)] : [];
  if (!status.isDirectory() || depth > deepestFolder) return [];
  const names = await readdir(path).catch(() => []);
  const files: ModelFile[] = [];
  for (const name of names.sort()) {
    if (!name.startsWith(".")) files.push(...(await search(join(path, name), depth + 1)));
  }
  return files;
}

/** A split model is as large as its parts together, and as new as the newest. */
async function withParts(path: string, first: { readonly size: number; readonly mtimeMs: number }): Promise<ModelFile> {
  const [, stem, count = "", ending] = firstPart.exec(path) ?? [];
  const single = { path, sizeBytes: first.size, modifiedMs: first.mtimeMs };
  if (stem === undefined || Number(count) < 2 || Number(count) > mostParts) return single;
  const furtherPaths: string[] = [];
  const missingParts: string[] = [];
  let { sizeBytes, modifiedMs } = single;
  for (let part = 2; part <= Number(count); part++) {
    const other = `${stem}-${String(part).padStart(5, "0")}-of-${count}${ending}`;
    const status = await stat(other).catch(() => undefined);
    if (status?.isFile() !== true) {
      missingParts.push(other.slice(dirname(other).length + 1));
      continue;
    }
    furtherPaths.push(other);
    sizeBytes += status.size;
    modifiedMs = Math.max(modifiedMs, status.mtimeMs);
  }
  return { path, sizeBytes, modifiedMs, furtherPaths, ...(missingParts.length > 0 && { missingParts }) };
}
