import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { partNames } from "./split-files.ts";

/** As deep as the embedded engine looks. */
const deepestFolder = 3;

/** Models in a folder, by their first files; the file itself when it is one. What can't be read is left out. */
export async function findGgufFiles(path: string, depth = 0): Promise<readonly string[]> {
  const status = await stat(path).catch(() => undefined);
  if (status?.isFile()) return isFirstFile(path) ? [path] : [];
  if (!status?.isDirectory() || depth > deepestFolder) return [];
  const files: string[] = [];
  for (const name of (await readdir(path).catch(() => [])).sort()) {
    if (!name.startsWith(".")) files.push(...(await findGgufFiles(join(path, name), depth + 1)));
  }
  return files;
}

function isFirstFile(path: string): boolean {
  const name = basename(path);
  return /\.gguf$/i.test(name) && partNames(name)[0] === name;
}
