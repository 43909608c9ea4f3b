import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";

/** What the service remembers of a model that it placed, in a hidden file beside it: it outlives the store and moves with the folder. */
export interface ModelOrigin {
  /** Key of the source. */
  readonly source: string;
  /** Every file of the model, in order. */
  readonly files: readonly { readonly name: string; readonly sizeBytes: number; readonly sha256: string }[];
  /** Entity tag of the first file. */
  readonly etag?: string;
  /** Instant, RFC 3339. */
  readonly placedAt: string;
}

const originSchema = z.object({
  source: z.string(),
  files: z.array(z.object({ name: z.string(), sizeBytes: z.number(), sha256: z.string() })).min(1),
  etag: z.string().exactOptional(),
  placedAt: z.string(),
});

/** @param path of the model's first file */
function originFile(path: string): string {
  return join(dirname(path), `.${basename(path)}.origin.json`);
}

/** Undefined: the service did not place this file, or can't tell. */
export async function readOrigin(path: string): Promise<ModelOrigin | undefined> {
  try {
    return originSchema.parse(JSON.parse(await readFile(originFile(path), "utf8")));
  } catch {
    return undefined;
  }
}

export async function writeOrigin(path: string, origin: ModelOrigin): Promise<void> {
  const file = originFile(path);
  await writeFile(`${file}.tmp`, JSON.stringify(origin, null, 2));
  await rename(`${file}.tmp`, file);
}

export async function removeOrigin(path: string): Promise<void> {
  await rm(originFile(path), { force: true });
}
