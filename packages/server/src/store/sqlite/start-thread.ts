import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

/** Starts a program of the folder `thread`. */
export function startThread(program: "main" | "repair", workerData: unknown): Worker {
  // Node's own module warns that its API may still change.
  const options = { name: "plenum-store", workerData, execArgv: ["--disable-warning=ExperimentalWarning"] };
  if (!import.meta.url.endsWith(".ts")) return new Worker(new URL(`./thread/${program}.js`, import.meta.url), options);
  // TypeScript needs its loader, which a thread takes only from inside.
  const entry = new URL(`./thread/${program}.ts`, import.meta.url).href;
  const loader = new URL("index.mjs", pathToFileURL(createRequire(import.meta.url).resolve("tsx/esm/api"))).href;
  const code = `import("${loader}").then(({ register }) => { register(); return import("${entry}"); });`;
  return new Worker(code, { ...options, eval: true });
}
