/** Runs in the child's loader (node:module, `register`). */
import type { InitializeHook, ResolveHook } from "node:module";
import { pathToFileURL } from "node:url";

export interface HookData {
  /** Of the build. */
  readonly folder: string;
  /** Address of the module that stands for node-llama-cpp. */
  readonly library: string;
}

let data: HookData = { folder: "", library: "" };

export const initialize: InitializeHook<HookData> = (given) => {
  data = given;
};

export const resolve: ResolveHook = async (specifier, context, next) => {
  // The stand-in itself imports the real one.
  if (specifier === "node-llama-cpp" && context.parentURL !== data.library) {
    return { url: data.library, format: "module", shortCircuit: true };
  }
  if (!specifier.startsWith("@node-llama-cpp/")) return next(specifier, context);
  const inBuild = { ...context, parentURL: pathToFileURL(`${data.folder}/package.json`).href };
  // Its processor build is not in the folder.
  return Promise.resolve(next(specifier, inBuild)).catch(() => next(specifier, context));
};
