import type { Config, GpuKind, GpuProbe } from "@plenum/server";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { createProgressBar } from "../progress-bar.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";

interface AddOptions {
  readonly kind: GpuKind;
  readonly config: Config;
  readonly isJson: boolean;
  readonly around: Surroundings;
  readonly signal: AbortSignal;
}

/**
 * Installs a build, tries it and tells what came of both.
 * @throws CoreError when it can't be had; the signal's reason
 */
export async function addBuild({ kind, config, isJson, around, signal }: AddOptions): Promise<ExitCode> {
  const { installBuild, probeBuild } = await import("@plenum/server");
  const bar = createProgressBar(around.errors);
  const label = `Installing the GPU build ${kind}`;
  const onProgress = ({ doneBytes, totalBytes }: { readonly doneBytes: number; readonly totalBytes: number }) =>
    bar.update({ label, done: doneBytes / 1e6, total: totalBytes / 1e6, unit: "MB" });
  const build = await installBuild({ kind, home: config.home, onProgress, signal }).finally(() => bar.end());
  if (!isJson) around.output.write(`The GPU build ${kind} ${build.version} is installed in ${build.folder}.\n`);
  const probe = await probeBuild(build, { signal });
  if (isJson) around.output.write(`${JSON.stringify({ ...build, ...probeJson(probe) }, null, 2)}\n`);
  else around.output.write(withoutControls(tried(kind, probe, config)));
  return exitCodes.ok;
}

/** What a try says, in the spelling of the JSON outputs. */
export function probeJson(probe: GpuProbe): object {
  if (!probe.loads) return probe;
  const { memoryBytes, freeBytes, ...rest } = probe;
  return { ...rest, memory_bytes: memoryBytes, free_bytes: freeBytes };
}

/** What a build lacks most often, and where it is had. */
export const driverAdvice: Readonly<Record<GpuKind, string>> = {
  cuda: "CUDA needs NVIDIA's driver and the CUDA 13 or 12 runtime (libcudart, libcublas); `nvidia-smi` shows whether the driver runs.",
  vulkan:
    "Vulkan needs its loader (libvulkan.so.1: package libvulkan1 or vulkan-loader) and the GPU's driver; `vulkaninfo --summary` lists what it finds.",
};

function tried(kind: GpuKind, probe: GpuProbe, { embedded }: Config): string {
  if (!probe.loads) {
    return `It does not load here: ${probe.reason}. Models run on the processor until it does.\n${driverAdvice[kind]}\n`;
  }
  const off = embedded.gpu !== "auto" && embedded.gpu !== kind;
  const note = off ? ` The configuration says embedded.gpu: ${embedded.gpu}, so it is not used.` : "";
  return `It loads here: ${probe.devices.join(", ")}.${note}\nA service that runs now uses it after its next start.\n`;
}
