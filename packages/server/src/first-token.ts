import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Core } from "@plenum/core";

/** Where the first token of a service is written, in the folder of all state. */
export function firstTokenFile(home: string): string {
  return join(home, "admin-token");
}

/**
 * Makes the first token of a service that has none, with every scope, and writes it where only the owner of the folder
 * reads it (LMSP §2).
 * @returns the file; undefined when there is a token already.
 * @throws Error when it can't be written; then no token was made.
 */
export async function createFirstToken(core: Core, home: string): Promise<string | undefined> {
  const file = firstTokenFile(home);
  const made = await core.tokens.createFirst("admin", async (token) => {
    await mkdir(home, { recursive: true });
    // A file that is there may be open to others.
    await rm(file, { force: true });
    await writeFile(file, `${token}\n`, { flag: "wx", mode: 0o600 });
  });
  return made === undefined ? undefined : file;
}
