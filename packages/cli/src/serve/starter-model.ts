import { type Config, ensureStarterModel, hasModelFile } from "@plenum/server";
import { type Surroundings, withoutControls } from "../surroundings.ts";
import { createProgressBar } from "./progress-bar.ts";

/**
 * Fetches the starter model when the folder holds no model at all. Where it can't be had, one sentence says so, and the
 * service runs without it.
 * @throws the signal's reason when aborted.
 */
export async function fetchStarterModel(config: Config, around: Surroundings, signal: AbortSignal): Promise<void> {
  if (!config.starterModel || !config.embedded.enabled || (await hasModelFile(config.models))) return;
  const bar = createProgressBar("Fetching the starter model", around.errors);
  try {
    await ensureStarterModel({ folder: config.models, onProgress: bar.update, signal });
    bar.end();
  } catch (error) {
    bar.end();
    signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    around.errors.write(`${withoutControls(reason)} The service starts without a model.\n`);
  }
}
