import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { SettingsStore } from "@plenum/core";

const settingName = "service/id";

/**
 * The service's id: made once and kept, so that clients know it again (LMSP §1).
 * @param home folder of all state; a file `service-id` in it, of a service that kept nothing else, is taken over.
 */
export async function keepServiceId(settings: SettingsStore, home: string): Promise<string> {
  const kept = await settings.get(settingName);
  if (typeof kept === "string") return kept;
  const id = (await readIdFile(join(home, "service-id"))) ?? randomUUID();
  await settings.set(settingName, id);
  return id;
}

async function readIdFile(file: string): Promise<string | undefined> {
  try {
    const id = (await readFile(file, "utf8")).trim();
    return /^[0-9a-f-]{36}$/.test(id) ? id : undefined;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
