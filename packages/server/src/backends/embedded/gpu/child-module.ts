/**
 * Loaded into an engine child before its program, when it is to run a GPU build: from then on, `node-llama-cpp` means
 * `library.ts`, and the packages of builds come from the build's folder. `?kind=…&folder=…&contextTokens=…` says which.
 */
import { register } from "node:module";
import { sourceOrBuilt } from "../source-or-built.ts";
import type { HookData } from "./resolve-hook.ts";

const parameters = new URL(import.meta.url).searchParams;
const data: HookData = {
  folder: parameters.get("folder") ?? "",
  library: `${sourceOrBuilt("./library", import.meta.url)}?${parameters}`,
};
register(sourceOrBuilt("./resolve-hook", import.meta.url), { data });
