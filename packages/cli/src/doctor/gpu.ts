import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { promisify } from "node:util";
import type { GpuBuild, GpuKind, GpuProbe, InstalledBuild } from "@plenum/server";
import { driverAdvice, probeJson } from "../engine/add-build.ts";
import { type Check, sizeText } from "./check.ts";
import type { Places } from "./places.ts";

/** A driver in trouble lets its tools hang. */
const toolMs = 3000;
const probeMs = 10_000;

/** GPUs as the machine's own tools tell them. */
interface SeenGpus {
  readonly names: readonly string[];
  /** The build that suits them. */
  readonly kind: GpuKind;
}

interface TriedBuild {
  readonly build: InstalledBuild;
  /** Undefined: its files can't be used. */
  readonly probe: GpuProbe | undefined;
}

/** Which GPU is here, which builds of the engine are installed, and whether one loads. */
export async function checkGpu({ home, config }: Places, signal: AbortSignal): Promise<Check> {
  const { availableKinds, findBuilds, probeBuild } = await import("@plenum/server");
  const [seen, builds] = await Promise.all([seeGpus(), findBuilds(home)]);
  const tried = await Promise.all(
    builds.map(async (build): Promise<TriedBuild> => {
      const probe = build.problem === undefined ? await probeBuild(build, { signal, timeoutMs: probeMs }) : undefined;
      return { build, probe };
    }),
  );
  const data = {
    seen: seen.names,
    builds: tried.map(({ build: { sizeBytes, ...build }, probe }) => ({
      ...build,
      size_bytes: sizeBytes,
      ...(probe && probeJson(probe)),
    })),
  };
  return { id: "gpu", ...judge(seen, tried, availableKinds(), config?.embedded.gpu ?? "auto"), data };
}

type Judged = Omit<Check, "id" | "data">;

/** What is to be told and done, given what was found. */
export function judge(
  seen: SeenGpus,
  tried: readonly TriedBuild[],
  available: readonly GpuKind[],
  setting: "auto" | "off" | GpuKind,
): Judged {
  const names = seen.names.join(", ");
  const gpu = names === "" ? "GPU: none seen" : `GPU: ${names}`;
  const lines = tried.map(buildLine);
  if (setting === "off")
    return { state: "ok", detail: `${gpu}; models run on the processor (embedded.gpu: off)`, lines };
  const used = tried.find(({ build, probe }) => probe?.loads && (setting === "auto" || build.kind === setting));
  if (used !== undefined)
    return { state: "ok", detail: `${gpu}; models run on it by the build ${used.build.kind}`, lines };
  if (setting !== "auto" && !tried.some(({ build }) => build.kind === setting)) {
    const detail = `${gpu}; embedded.gpu is ${setting}, but that build is not installed`;
    return { state: "problem", detail, lines, todo: [`plenum engine add ${setting}`] };
  }
  if (tried.length > 0) {
    const detail = `${gpu}; no installed build can be used, models run on the processor`;
    return { state: "note", detail, lines, todo: tried.flatMap(buildAdvice) };
  }
  if (names === "") return { state: "ok", detail: `${gpu}; models run on the processor` };
  if (!available.includes(seen.kind)) {
    return { state: "ok", detail: `${gpu}; there is no GPU build for this machine, models run on the processor` };
  }
  const detail = `${gpu}; no GPU build is installed, models run on the processor`;
  return { state: "note", detail, todo: [`plenum engine add ${seen.kind}`] };
}

function buildLine({ build, probe }: TriedBuild): string {
  const name = `build ${build.kind} ${build.version}`;
  if (probe === undefined) return `${name}: ${build.problem}`;
  if (!probe.loads) return `${name}: does not load, ${probe.reason}`;
  return `${name}: loads, ${probe.devices.join(", ")}, memory ${sizeText(probe.freeBytes)} free of ${sizeText(probe.memoryBytes)}`;
}

function buildAdvice({ build, probe }: { readonly build: GpuBuild; readonly probe: GpuProbe | undefined }) {
  if (probe === undefined) return [`plenum engine add ${build.kind}`];
  return probe.loads ? [] : [driverAdvice[build.kind], `or do without: plenum engine remove ${build.kind}`];
}

async function seeGpus(): Promise<SeenGpus> {
  const [nvidia, vulkan, nodes] = await Promise.all([
    run("nvidia-smi", ["--query-gpu=name", "--format=csv,noheader"]),
    run("vulkaninfo", ["--summary"]),
    readdir("/dev/dri").catch(() => []),
  ]);
  const nvidiaNames = nvidia.split("\n").flatMap((line) => line.trim() || []);
  if (nvidiaNames.length > 0) return { names: nvidiaNames, kind: "cuda" };
  const vulkanNames = vulkanGpus(vulkan);
  if (vulkanNames.length > 0) return { names: vulkanNames, kind: "vulkan" };
  const rendering = nodes.filter((name) => name.startsWith("renderD"));
  return { names: rendering.map((name) => `/dev/dri/${name}`), kind: "vulkan" };
}

/** Names in the output of `vulkaninfo --summary`; a processor that draws is no GPU. */
export function vulkanGpus(summary: string): readonly string[] {
  const devices = [...summary.matchAll(/deviceType\s*=\s*(\S+)\s*\n\s*deviceName\s*=\s*(.+)/g)];
  return devices.flatMap(([, type, name]) => (type === "PHYSICAL_DEVICE_TYPE_CPU" ? [] : (name?.trim() ?? [])));
}

/** What a tool writes; empty when it is not there, fails or takes too long. */
async function run(program: string, words: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(program, words, { timeout: toolMs, killSignal: "SIGKILL" })).stdout;
  } catch {
    return "";
  }
}
