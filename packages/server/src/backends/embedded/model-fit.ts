import { basename } from "node:path";
import { EmbeddedModel, modelOptions } from "./embedded-model.ts";
import { inspectModel } from "./inspect-model.ts";
import { availableBytes } from "./memory.ts";
import { contextShare } from "./model-catalog.ts";
import { findModelFiles } from "./model-files.ts";
import { nameModel } from "./model-name.ts";
import { type EmbeddedBackendOptions, settingsOf } from "./options.ts";

/** What a model file would take on this machine now. */
export interface ModelFit {
  /** Absolute. */
  readonly path: string;
  /** As the catalog would name it. */
  readonly name: string;
  /** Why it can't be used, in one sentence; absent: it can. */
  readonly problem?: string;
  readonly sizeBytes: number;
  /** Tokens of prompt and answer together that each of its responses would get. */
  readonly contextTokens: number;
  /** Bytes that it would take with that context, by estimate. */
  readonly neededBytes: number;
  /** Bytes that are free. */
  readonly freeBytes: number;
}

/** Looks at the files as the backend would, and starts nothing. Never rejects. */
export async function findModelFits(options: EmbeddedBackendOptions): Promise<readonly ModelFit[]> {
  const settings = settingsOf(options);
  const freeBytes = Math.min(availableBytes(), settings.memoryLimitBytes);
  const fits: ModelFit[] = [];
  for (const file of await findModelFiles(settings.paths)) {
    const inspected = await inspectModel(file);
    if (inspected.facts?.use === "other") continue;
    const made = nameModel(basename(file.path));
    const own = modelOptions(settings, file.path, made.name);
    const model = new EmbeddedModel({
      inspected,
      name: own.name === undefined ? made : { ...made, name: own.name },
      settings,
      options: own,
      budgetBytes: freeBytes * contextShare,
      engineEntry: undefined,
      reserve: async () => () => undefined,
      gpu: async () => undefined,
      onChange: () => undefined,
    });
    const { path, sizeBytes } = file;
    const { name, contextTokens, neededBytes } = model;
    const { problem } = inspected;
    fits.push({ path, name, sizeBytes, contextTokens, neededBytes, freeBytes, ...(problem && { problem }) });
  }
  return fits;
}
