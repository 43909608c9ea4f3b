/** Child program: the SHA-256 of each file that it is told, one after the other, out of the service's way. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { constants, setPriority } from "node:os";
import { pipeline } from "node:stream/promises";

process.on("disconnect", () => process.exit(0));
process.on("message", (path: string) => {
  void digest(path).then((answer) => process.send?.(answer));
});

try {
  setPriority(constants.priority.PRIORITY_LOW);
} catch {
  // Only politeness: without it the digest competes with the models.
}

async function digest(path: string): Promise<{ path: string; sha256?: string }> {
  try {
    const hash = createHash("sha256");
    await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
    return { path, sha256: hash.digest("hex") };
  } catch {
    // The file is gone or unreadable; the catalog then shows no digest.
    return { path };
  }
}
