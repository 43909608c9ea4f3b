import { isAbsolute, join, relative, sep } from "node:path";

const longestName = 200;

/** A name for the models folder, whatever a server or a URL calls the file: no folder, no dot before it, plain characters. */
export function safeName(written: string): string {
  const last = written.split(/[/\\]/).at(-1) ?? "";
  const plain = last.replaceAll(/[^A-Za-z0-9._+-]/g, "_").replace(/^[._-]+/, "");
  const name = plain.slice(-longestName).replace(/^[._-]+/, "");
  return name === "" ? "model" : name;
}

/** The same, as the name of a GGUF file. */
export function safeGgufName(written: string): string {
  const name = safeName(written);
  return /\.gguf$/i.test(name) ? name : `${name}.gguf`;
}

/** Joins names that are safe. @throws RangeError for a path that would lie outside of the folder. */
export function insideOf(folder: string, ...names: readonly string[]): string {
  const path = join(folder, ...names);
  if (!isInside(folder, path)) throw new RangeError("a model file must lie in the models folder");
  return path;
}

export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
