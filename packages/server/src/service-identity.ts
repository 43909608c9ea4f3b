import { randomUUID } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The service's id: made once and kept in its home, so that clients know it again (LMSP §1).
 * @param home folder of all state; made when missing.
 */
export async function readServiceId(home: string): Promise<string> {
  const file = join(home, "service-id");
  try {
    const id = (await readFile(file, "utf8")).trim();
    if (/^[0-9a-f-]{36}$/.test(id)) return id;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  const id = randomUUID();
  await mkdir(home, { recursive: true });
  await writeFile(file, `${id}\n`);
  return id;
}
