import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/**
 * The engine uses methods inside node-llama-cpp that only one version is known to have, so package.json pins it. GPU
 * builds must be of the same version: the library takes no other.
 */
export const pinnedVersion: string = readPinned();

/** Version of the node-llama-cpp that is installed; undefined when there is none. */
export function installedVersion(): string | undefined {
  try {
    const entry = createRequire(import.meta.url).resolve("node-llama-cpp");
    return textAt(readJson(new URL("../package.json", `file://${entry}`)), ["version"]);
  } catch {
    return undefined;
  }
}

/** Why no model file can be run with this library, in one sentence; undefined when it is the right one. */
export function libraryProblem(installed: string | undefined): string | undefined {
  if (installed === pinnedVersion) return undefined;
  const found = installed === undefined ? "is not installed" : `is version ${installed}`;
  return `node-llama-cpp ${found}, but the embedded engine works with ${pinnedVersion} only; install it with \`npm ci\`.`;
}

function readPinned(): string {
  // The package's own file, three folders up both from `src` and from `dist`.
  const manifest = readJson(new URL("../../../package.json", import.meta.url));
  const version = textAt(manifest, ["dependencies", "node-llama-cpp"]);
  if (version === undefined) throw new TypeError("package.json pins no node-llama-cpp.");
  return version;
}

function readJson(file: URL): unknown {
  return JSON.parse(readFileSync(file, "utf8"));
}

function textAt(value: unknown, path: readonly string[]): string | undefined {
  let found = value;
  for (const name of path) found = typeof found === "object" && found !== null ? Reflect.get(found, name) : undefined;
  return typeof found === "string" ? found : undefined;
}
