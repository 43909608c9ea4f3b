// Where the tests find the starter model. Needs a build.
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { root } from "./prepare.mjs";

/**
 * Path of the model that tests run: the user's own copy where there is one, else one in the checkout's cache, fetched
 * once. Undefined, with a loud reason, when it can't be had.
 */
export async function starterModelForTests() {
  const { ensureStarterModel, starterModel } = await import("../../packages/server/dist/model-files/index.js");
  const { createProgressBar } = await import("../../packages/cli/dist/progress-bar.js");
  const own = join(process.env.PLENUM_MODELS || join(process.env.PLENUM_HOME || join(homedir(), ".plenum"), "models"));
  const found = await stat(join(own, starterModel.name)).catch(() => undefined);
  if (found?.size === starterModel.sizeBytes) return join(own, starterModel.name);

  const output = { isTerminal: process.stderr.isTTY === true, write: (text) => process.stderr.write(text) };
  const bar = createProgressBar(output);
  const mebibyte = 1024 * 1024;
  const onProgress = ({ doneBytes, totalBytes }) =>
    bar.update({
      label: "Fetching the starter model for the tests",
      done: doneBytes / mebibyte,
      total: totalBytes / mebibyte,
      unit: "MiB",
    });
  try {
    const { path } = await ensureStarterModel({ folder: join(root, ".cache/models"), onProgress });
    return path;
  } catch (error) {
    const line = "!".repeat(100);
    console.error(`${line}\nTESTS WITH A REAL MODEL ARE SKIPPED. ${error.message}\n${line}`);
    return undefined;
  } finally {
    bar.end();
  }
}
