import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { runProgram } from "../program.ts";
import { fakeSurroundings } from "../testing/fake-surroundings.ts";

let home: string;

// The commands load it when they are run, which takes its time on a busy machine.
beforeAll(() => import("@plenum/server"), 60_000);
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-engine-"));
});
afterEach(() => rm(home, { recursive: true }));

async function engine(...words: readonly string[]) {
  const around = fakeSurroundings({ env: { HOME: home, PLENUM_HOME: home } });
  const code = await runProgram(["engine", ...words], around);
  return { code, ...around.written };
}

async function putOldBuild(): Promise<string> {
  const folder = join(home, "engines", "cuda-1.0.0");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "part"), "x".repeat(2_000_000));
  return folder;
}

test("a kind that does not exist: one sentence, exit code 2", async () => {
  const { code, output, errors } = await engine("add", "rocm");
  expect([code, output]).toEqual([2, ""]);
  expect(errors).toMatch(/^plenum: There is no GPU build "?rocm"?/);
});

test("what is not installed can't be removed", async () => {
  expect(await engine("remove", "vulkan")).toEqual({
    code: 1,
    output: "",
    errors: "plenum: The GPU build vulkan is not installed.\n",
  });
});

test("lists a build of another version with what to do, and removes it", async () => {
  const folder = await putOldBuild();
  const { builds } = JSON.parse((await engine("list", "--json")).output);
  expect(builds[0]).toMatchObject({ kind: "cuda", version: "1.0.0", folder, installed: true, size_bytes: 2_000_000 });
  expect(builds[0].problem).toContain("plenum engine add cuda");
  expect((await engine("list")).output).toMatch(
    /^BUILD +VERSION +STATE +SIZE +FOLDER\ncuda +1\.0\.0 +It is of version/,
  );
  expect(await engine("remove", "cuda")).toMatchObject({ code: 0, output: "Removed cuda 1.0.0 (2 MB).\n" });
  expect(await readdir(join(home, "engines"))).toEqual([]);
});

test("removal as JSON", async () => {
  const folder = await putOldBuild();
  expect(JSON.parse((await engine("remove", "cuda", "--json")).output)).toMatchObject({ removed: [{ folder }] });
});
