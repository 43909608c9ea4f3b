import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pinnedVersion } from "../library-version.ts";
import { putBuild } from "../testing/fake-build.ts";
import { availableKinds, findBuilds } from "./builds.ts";

const machine = { platform: "linux", arch: "x64" };
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-builds-"));
});
afterEach(() => rm(home, { recursive: true }));

test.each([
  ["linux", "x64", ["cuda", "vulkan"]],
  ["win32", "x64", ["cuda", "vulkan"]],
  ["linux", "arm64", []],
  ["darwin", "arm64", []],
  ["constructor", "", []],
])("builds for %s %s: %j", (platform, arch, kinds) => {
  expect(availableKinds({ platform, arch })).toEqual(kinds);
});

test("no folder, no builds", async () => {
  expect(await findBuilds(join(home, "missing"))).toEqual([]);
});

test("finds what is there, the most capable first, and what is wrong with it", async () => {
  await putBuild({ home, kind: "vulkan" });
  await putBuild({ home, kind: "cuda", leaveOut: ["linux-x64-cuda-ext"] });
  await putBuild({ home, kind: "cuda", version: "3.0.0" });
  const found = await findBuilds(home, machine);
  const told = found.map(({ kind, version, problem }) => [kind, version, problem]).sort();
  expect(found[0]?.kind).toBe("cuda");
  expect(told).toEqual([
    ["cuda", "3.0.0", `It is of version 3.0.0, the engine needs ${pinnedVersion}: \`plenum engine add cuda\`.`],
    ["cuda", pinnedVersion, "Its package @node-llama-cpp/linux-x64-cuda-ext is missing: `plenum engine add cuda`."],
    ["vulkan", pinnedVersion, undefined],
  ]);
  expect(found.every(({ sizeBytes }) => sizeBytes > 0)).toBe(true);
});

test("a build that was copied from another kind of machine", async () => {
  await putBuild({ home, kind: "vulkan" });
  const [build] = await findBuilds(home, { platform: "darwin", arch: "arm64" });
  expect(build?.problem).toBe("It is not for this machine (darwin arm64).");
});
