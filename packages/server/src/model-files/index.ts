export type { EnsuredModelFile, EnsureModelFileOptions } from "./ensure-model-file.ts";
export { createModelExecutors } from "./model-executors.ts";
export type { FetchProgress, FetchSource, OnProgress } from "./model-file.ts";
export { ModelLibrary } from "./model-library.ts";
export { ModelPuller } from "./model-puller.ts";
export { ensureStarterModel, hasModelFile, starterModel } from "./starter-model.ts";
