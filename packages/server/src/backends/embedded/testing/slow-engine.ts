/** An engine child for tests that never gets ready. */
process.on("disconnect", () => process.exit(0));
process.on("message", () => undefined);
