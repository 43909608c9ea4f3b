/**
 * The native interface's own machinery, in numbers; those of the last run are in `bench/results/lmsp.json`.
 *   npm run bench -- lmsp --only store
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { Part } from "./part.ts";
import { store } from "./store.ts";

const parts: readonly Part[] = [store];

const { values: flags } = parseArgs({ options: { only: { type: "string" } } });
const file = fileURLToPath(new URL("../results/lmsp.json", import.meta.url));

async function readEarlier(): Promise<Readonly<Record<string, unknown>>> {
  try {
    return JSON.parse(await readFile(file, "utf8")).parts;
  } catch {
    return {};
  }
}

const measured: Record<string, unknown> = { ...(await readEarlier()) };
for (const part of parts) {
  if (flags.only !== undefined && flags.only !== part.name) continue;
  const figures = await part.run();
  measured[part.name] = figures;
  for (const { name, value, unit } of figures) console.log(`measured: ${part.name}: ${name}: ${value} ${unit}`);
}
await mkdir(new URL("../results/", import.meta.url), { recursive: true });
const about = { node: process.version, processor: cpus()[0]?.model ?? "unknown", processors: cpus().length };
await writeFile(file, `${JSON.stringify({ ...about, at: new Date().toISOString(), parts: measured }, null, 2)}\n`);
