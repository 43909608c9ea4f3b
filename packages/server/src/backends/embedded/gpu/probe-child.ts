/** Opens the library in a process of its own, which a driver may take down with it, and tells what it sees. */
import { getLlama, LlamaLogLevel } from "node-llama-cpp";
import type { ProbeMessage } from "./probe.ts";

async function look(): Promise<ProbeMessage> {
  try {
    const options = {
      build: "never",
      skipDownload: true,
      progressLogs: false,
      logLevel: LlamaLogLevel.disabled,
    } as const;
    const llama = await getLlama(options);
    const { total, free } = await llama.getVramState();
    return { devices: await llama.getGpuDeviceNames(), memoryBytes: total, freeBytes: free };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

const message = await look();
process.send?.(message, undefined, undefined, () => process.exit(0));
