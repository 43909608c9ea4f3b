export type { EnsuredModelFile, EnsureModelFileOptions } from "./ensure-model-file.ts";
export type { FetchProgress, FetchSource, OnProgress } from "./model-file.ts";
export { ensureStarterModel, hasModelFile, starterModel } from "./starter-model.ts";
