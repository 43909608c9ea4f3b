/** An engine child for tests that never gets ready. */
import type { ServiceMessage } from "../messages.ts";

process.on("disconnect", () => process.exit(0));
process.on("message", (message: ServiceMessage) => {
  if (message.type === "exit") process.exit(0);
});
