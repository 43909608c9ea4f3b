/** GPU builds of the engine: which exist, which are installed, whether one loads here. */
export { availableKinds, findBuilds, type GpuBuild, type GpuKind, gpuKinds, type InstalledBuild } from "./builds.ts";
export { installBuild, missingKind, removeBuild } from "./install-build.ts";
export { type GpuProbe, probeBuild } from "./probe.ts";
