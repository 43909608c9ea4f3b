import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pinnedVersion } from "../library-version.ts";
import { putBuild } from "../testing/fake-build.ts";
import type { GpuSetting } from "./builds.ts";
import { chooseBuild } from "./choose-build.ts";
import type { GpuProbe } from "./probe.ts";

let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-choose-"));
});
afterEach(() => rm(home, { recursive: true }));

const loads: GpuProbe = { loads: true, devices: ["Test GPU"], memoryBytes: 8e9, freeBytes: 7e9 };
const fails: GpuProbe = { loads: false, reason: "this machine lacks libcuda.so.1" };

async function choose(
  setting: GpuSetting,
  probes: Readonly<Record<string, GpuProbe>> = {},
  folder: string | undefined = home,
) {
  const lines: { readonly details: object; readonly message: string }[] = [];
  const write = (details: object, message: string) => void lines.push({ details, message });
  const build = await chooseBuild({
    setting,
    home: folder,
    logger: { info: write, warn: write },
    signal: new AbortController().signal,
    probe: async ({ kind }) => probes[kind] ?? fails,
  });
  return { kind: build?.kind, lines };
}

const cpuLine = "no GPU build loads; models run on the processor";

describe.runIf(process.platform === "linux" && process.arch === "x64")("with builds of this machine", () => {
  beforeEach(async () => {
    await putBuild({ home, kind: "cuda" });
    await putBuild({ home, kind: "vulkan" });
  });

  test.each<[GpuSetting, Readonly<Record<string, GpuProbe>>, string | undefined, string | undefined]>([
    ["auto", { cuda: loads, vulkan: loads }, "cuda", "models run on the GPU"],
    ["auto", { vulkan: loads }, "vulkan", "models run on the GPU"],
    ["auto", {}, undefined, cpuLine],
    ["vulkan", { cuda: loads, vulkan: loads }, "vulkan", "models run on the GPU"],
    ["vulkan", { cuda: loads }, undefined, cpuLine],
    ["off", { cuda: loads }, undefined, undefined],
  ])("%s with %j: %s, one line at most", async (setting, probes, kind, line) => {
    const chosen = await choose(setting, probes);
    expect(chosen.kind).toBe(kind);
    expect(chosen.lines.map(({ message }) => message)).toEqual(line === undefined ? [] : [line]);
  });

  test("the line says why each build was passed over", async () => {
    const { lines } = await choose("auto");
    const reason = `${pinnedVersion}: this machine lacks libcuda.so.1`;
    expect(lines[0]?.details).toEqual({ reasons: [`cuda ${reason}`, `vulkan ${reason}`] });
  });

  test("a build of another version is never tried", async () => {
    await rm(join(home, "engines"), { recursive: true });
    await putBuild({ home, kind: "cuda", version: "3.0.0" });
    const { kind, lines } = await choose("auto", { cuda: loads });
    expect(kind).toBeUndefined();
    expect(JSON.stringify(lines)).toContain("plenum engine add cuda");
  });
});

test("nothing installed: silent, unless a build was asked for", async () => {
  expect(await choose("auto")).toEqual({ kind: undefined, lines: [] });
  const { lines } = await choose("cuda");
  expect(lines).toEqual([
    { message: cpuLine, details: { reasons: ["cuda is not installed: `plenum engine add cuda`"] } },
  ]);
});
