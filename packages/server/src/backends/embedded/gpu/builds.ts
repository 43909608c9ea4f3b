import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { pinnedVersion } from "../library-version.ts";

/** Builds of the engine for graphics processors, as `plenum engine add` names them; the most capable first. */
export const gpuKinds = ["cuda", "vulkan"] as const;

export type GpuKind = (typeof gpuKinds)[number];

/** `auto`: whatever is installed and loads; `off`: the processor; else this build, or the processor where it does not load. */
export type GpuSetting = "auto" | "off" | GpuKind;

/** A build that is installed and belongs to the library that runs. */
export interface GpuBuild {
  readonly kind: GpuKind;
  readonly version: string;
  /** Absolute; its `node_modules` holds the packages. */
  readonly folder: string;
}

/** A folder of builds as it was found, of whatever version. */
export interface InstalledBuild extends GpuBuild {
  /** Why the engine can't use it, in one sentence; absent: it can, as far as its files tell. */
  readonly problem?: string;
  /** Bytes on the disk. */
  readonly sizeBytes: number;
}

interface BuildPackages {
  /** Without `@node-llama-cpp/`; the first holds the engine. */
  readonly names: readonly string[];
  /** Bytes on the disk of all of them, about. */
  readonly sizeBytes: number;
}

const megabyte = 1_000_000;

/** What node-llama-cpp publishes beside the build for processors, by `platform-arch` of Node. */
const published: Readonly<Record<string, Readonly<Record<GpuKind, BuildPackages>>>> = {
  "linux-x64": buildsOf("linux-x64"),
  "win32-x64": buildsOf("win-x64"),
};

function buildsOf(prefix: string): Readonly<Record<GpuKind, BuildPackages>> {
  return {
    cuda: { names: [`${prefix}-cuda`, `${prefix}-cuda-ext`], sizeBytes: 564 * megabyte },
    vulkan: { names: [`${prefix}-vulkan`], sizeBytes: 74 * megabyte },
  };
}

/** Platform and architecture in Node's words. @default those of this process */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
}

/** Kinds that exist for a machine; empty where there is none. */
export function availableKinds({ platform, arch }: Machine = process): readonly GpuKind[] {
  return published[`${platform}-${arch}`] === undefined ? [] : gpuKinds;
}

/** Packages of one kind; undefined where it does not exist. */
export function packagesOf(kind: GpuKind, { platform, arch }: Machine = process): BuildPackages | undefined {
  return published[`${platform}-${arch}`]?.[kind];
}

/** Folder of all builds under the folder of state. */
export function enginesFolder(home: string): string {
  return join(home, "engines");
}

/** Folder of one build. */
export function buildFolder(home: string, kind: GpuKind, version: string = pinnedVersion): string {
  return join(enginesFolder(home), `${kind}-${version}`);
}

/** Where a build keeps one of its packages. */
export function packageFolder(folder: string, name: string): string {
  return join(folder, "node_modules", "@node-llama-cpp", name);
}

/** Builds under the folder of state, in the order of `gpuKinds`; those of another version have a problem. Never rejects. */
export async function findBuilds(home: string, machine: Machine = process): Promise<readonly InstalledBuild[]> {
  const names = await readdir(enginesFolder(home)).catch(() => []);
  const found = names.flatMap((name) => {
    const [, kind, version] = /^(cuda|vulkan)-(\d.*)$/.exec(name) ?? [];
    return version === undefined ? [] : [{ kind: kind as GpuKind, version, folder: join(enginesFolder(home), name) }];
  });
  const builds = await Promise.all(
    found.map(async (build) => {
      const [problem, sizeBytes] = await Promise.all([problemOf(build, machine), folderBytes(build.folder)]);
      return { ...build, sizeBytes, ...(problem === undefined ? {} : { problem }) };
    }),
  );
  return builds.sort((a, b) => gpuKinds.indexOf(a.kind) - gpuKinds.indexOf(b.kind));
}

/** Why a build's files can't be used; undefined: they can. */
export async function problemOf(build: GpuBuild, machine: Machine = process): Promise<string | undefined> {
  const { kind, version, folder } = build;
  const again = `\`plenum engine add ${kind}\``;
  if (version !== pinnedVersion) return `It is of version ${version}, the engine needs ${pinnedVersion}: ${again}.`;
  const packages = packagesOf(kind, machine);
  if (packages === undefined) return `It is not for this machine (${machine.platform} ${machine.arch}).`;
  for (const name of packages.names) {
    const found = await readVersion(packageFolder(folder, name));
    if (found === version) continue;
    return `Its package @node-llama-cpp/${name} is ${found === undefined ? "missing" : `of version ${found}`}: ${again}.`;
  }
  return undefined;
}

async function readVersion(folder: string): Promise<string | undefined> {
  try {
    const manifest: unknown = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const isKnown = typeof manifest === "object" && manifest !== null && "version" in manifest;
    return isKnown ? String(manifest.version) : undefined;
  } catch {
    return undefined;
  }
}

/** Bytes of all files below a folder; what can't be read counts as none. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = entries.map(async (entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return folderBytes(path);
    return entry.isFile() ? ((await stat(path).catch(() => undefined))?.size ?? 0) : 0;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
