/** Child program: the SHA-256 of the files of each model that it is told, one after the other, out of the service's way. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { constants, setPriority } from "node:os";
import { pipeline } from "node:stream/promises";

process.on("disconnect", () => process.exit(0));
process.on("message", (paths: readonly string[]) => {
  void digest(paths).then((answer) => process.send?.(answer));
});

try {
  setPriority(constants.priority.PRIORITY_LOW);
} catch {
  // Only politeness: without it the digest competes with the models.
}

async function digest(paths: readonly string[]): Promise<{ sha256?: string }> {
  try {
    const hash = createHash("sha256");
    for (const path of paths) {
      await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), async (chunks: AsyncIterable<Buffer>) => {
        for await (const chunk of chunks) hash.update(chunk);
      });
    }
    return { sha256: hash.digest("hex") };
  } catch {
    // A file is gone or unreadable; the catalog then shows no digest.
    return {};
  }
}
