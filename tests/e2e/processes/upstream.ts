/** A hostile runtime in a process of its own. Tells when an endless answer begins and when its connection is closed. */
import { startHostileUpstream } from "../../../packages/server/src/backends/shared/testing/hostile-upstream.ts";

const upstream = await startHostileUpstream({
  onBegin: () => process.send?.({ began: true }),
  // The machine's monotonic clock, which its processes share.
  onClosed: () => process.send?.({ closedAt: String(process.hrtime.bigint()) }),
});
process.on("message", () => process.send?.({ running: upstream.running }));
process.on("disconnect", () => process.exit(0));
process.send?.({ url: upstream.url });
