import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { pinnedVersion } from "../library-version.ts";
import { putBuild } from "../testing/fake-build.ts";
import { findBuilds } from "./builds.ts";
import { installBuild, missingKind, removeBuild } from "./install-build.ts";

const machine = { platform: "linux", arch: "x64" };
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-install-"));
});
afterEach(() => rm(home, { recursive: true }));

/** A program that stands for npm. It has its words in `words` and runs in the folder to install into. */
async function npm(body: string): Promise<readonly string[]> {
  const file = join(home, "npm.mjs");
  await writeFile(
    file,
    `import { mkdirSync, writeFileSync } from "node:fs";
const words = process.argv.slice(2);
${body}`,
  );
  return [process.execPath, file];
}

/** Installs each package that it is asked for, as npm would. */
const installs = `
for (const word of words.filter((word) => word.startsWith("@"))) {
  const [, name, version] = /^(.+)@(.+)$/.exec(word);
  mkdirSync("node_modules/" + name, { recursive: true });
  writeFileSync("node_modules/" + name + "/package.json", JSON.stringify({ name, version }));
}
writeFileSync("words.json", JSON.stringify(words));`;

const engines = () => readdir(join(home, "engines"));

test("installs the packages of the pinned version, whole, and tells its progress", async () => {
  const progress: { readonly doneBytes: number; readonly totalBytes: number }[] = [];
  const onProgress = (step: (typeof progress)[number]) => void progress.push(step);
  const build = await installBuild({ kind: "cuda", home, machine, npm: await npm(installs), onProgress });
  expect(build).toEqual({
    kind: "cuda",
    version: pinnedVersion,
    folder: join(home, "engines", `cuda-${pinnedVersion}`),
  });
  expect(await engines()).toEqual([`cuda-${pinnedVersion}`]);
  expect(await findBuilds(home, machine)).toMatchObject([{ kind: "cuda", version: pinnedVersion }]);
  expect((await findBuilds(home, machine))[0]).not.toHaveProperty("problem");
  expect(progress.at(-1)).toEqual({ doneBytes: 564_000_000, totalBytes: 564_000_000 });
});

test("nothing of a package is run, and both packages of cuda are asked for", async () => {
  const build = await installBuild({ kind: "cuda", home, machine, npm: await npm(installs) });
  const { default: words } = await import(join(build.folder, "words.json"), { with: { type: "json" } });
  expect(words).toContain("--ignore-scripts");
  expect(words.slice(-2)).toEqual([
    `@node-llama-cpp/linux-x64-cuda@${pinnedVersion}`,
    `@node-llama-cpp/linux-x64-cuda-ext@${pinnedVersion}`,
  ]);
});

test("a sound build is not installed again, a broken one is", async () => {
  await putBuild({ home, kind: "vulkan" });
  await installBuild({ kind: "vulkan", home, machine, npm: await npm("process.exit(1);") });
  await putBuild({ home, kind: "cuda", leaveOut: ["linux-x64-cuda-ext"] });
  await installBuild({ kind: "cuda", home, machine, npm: await npm(installs) });
  expect((await findBuilds(home, machine)).map(({ problem }) => problem)).toEqual([undefined, undefined]);
});

test("when npm fails its own sentence is told, and nothing is left", async () => {
  const failing = await npm(
    `console.error("npm error code E404\\nnpm error 404 Not Found - it is not there"); process.exit(1);`,
  );
  await expect(installBuild({ kind: "cuda", home, machine, npm: failing })).rejects.toMatchObject({
    code: "backend-error",
    message: "The GPU build cuda could not be installed: 404 Not Found - it is not there",
  });
  expect(await engines()).toEqual([]);
});

test("without npm: one sentence", async () => {
  const missing = installBuild({ kind: "cuda", home, machine, npm: [join(home, "no-npm")] });
  await expect(missing).rejects.toThrow(/^The GPU build cuda could not be installed: npm can't be started/);
});

test("packages that did not come are no build", async () => {
  const nothing = installBuild({ kind: "vulkan", home, machine, npm: await npm("") });
  await expect(nothing).rejects.toThrow("Its package @node-llama-cpp/linux-x64-vulkan is missing");
  expect(await engines()).toEqual([]);
});

test("stopped: npm is ended and nothing is left", async () => {
  const abort = new AbortController();
  const hanging = await npm(`${installs} setInterval(() => {}, 1000);`);
  const onProgress = () => abort.abort(new Error("enough"));
  const options = { kind: "cuda", home, machine, npm: hanging, signal: abort.signal, onProgress } as const;
  await expect(installBuild(options)).rejects.toThrow("enough");
  expect(await engines()).toEqual([]);
});

test("what a killed installation left is cleared away", async () => {
  // No process has this number: the highest of Linux is 4194304.
  for (const name of [".adding-cuda-99999999", ".removing-99999999"]) {
    await mkdir(join(home, "engines", name), { recursive: true });
  }
  await installBuild({ kind: "cuda", home, machine, npm: await npm(installs) });
  expect(await engines()).toEqual([`cuda-${pinnedVersion}`]);
});

test.each([
  ["rocm", machine, 'There is no GPU build "rocm"; there are cuda and vulkan.'],
  [
    "cuda",
    { platform: "linux", arch: "arm64" },
    "There is no GPU build cuda for this machine (linux arm64); models run on the processor.",
  ],
])("%s on %j does not exist", (kind, where, sentence) => {
  expect(missingKind(kind, where)).toBe(sentence);
});

test("a machine without builds is told so before anything is made", async () => {
  const where = { platform: "linux", arch: "arm64" };
  await expect(installBuild({ kind: "cuda", home, machine: where })).rejects.toMatchObject({ code: "invalid-request" });
  expect(await readdir(home)).toEqual([]);
});

test("removes a build", async () => {
  await removeBuild({ folder: await putBuild({ home, kind: "vulkan" }) });
  expect(await engines()).toEqual([]);
});
