import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { DigestedFile } from "./digests.ts";

const deepestFolder = 3;
/** Parts of a split model after the first; the engine finds them by itself. */
const laterPart = /-(?!00001)\d{5}-of-\d{5}\.gguf$/i;

/**
 * GGUF files among the given paths, in the order of the paths and by name within a folder. What can't be read is left
 * out, but a file that is named itself is listed even when it is missing, so that the catalog can say so.
 */
export async function findModelFiles(paths: readonly string[]): Promise<readonly DigestedFile[]> {
  const found = new Map<string, DigestedFile>();
  for (const path of paths) {
    for (const file of await search(resolve(path), 0)) {
      if (!found.has(file.path)) found.set(file.path, file);
    }
  }
  return [...found.values()];
}

async function search(path: string, depth: number): Promise<readonly DigestedFile[]> {
  const isModel = /\.gguf$/i.test(path) && !laterPart.test(path);
  let status: Awaited<ReturnType<typeof stat>>;
  try {
    status = await stat(path);
  } catch {
    return isModel && depth === 0 ? [{ path, sizeBytes: 0, modifiedMs: 0 }] : [];
  }
  if (status.isFile()) return isModel ? [{ path, sizeBytes: status.size, modifiedMs: status.mtimeMs }] : [];
  if (!status.isDirectory() || depth > deepestFolder) return [];
  const names = await readdir(path).catch(() => []);
  const files: DigestedFile[] = [];
  for (const name of names.sort()) {
    if (!name.startsWith(".")) files.push(...(await search(join(path, name), depth + 1)));
  }
  return files;
}
