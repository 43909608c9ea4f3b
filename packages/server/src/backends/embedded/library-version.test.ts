import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestDefaults } from "@plenum/core";
import type { LlamaModel } from "node-llama-cpp";
import { expect, test } from "vitest";
import { openAddonContext, openAddonModel, openSamplers } from "./engine/addon.ts";
import { createEmbeddedBackend } from "./index.ts";
import { installedVersion, libraryProblem, pinnedVersion } from "./library-version.ts";
import { writeGguf } from "./testing/gguf-writer.ts";

test("one exact version is pinned, and it is the installed one", () => {
  expect(pinnedVersion).toMatch(/^\d+\.\d+\.\d+$/);
  expect(installedVersion()).toBe(pinnedVersion);
  expect(libraryProblem(installedVersion())).toBeUndefined();
});

const install = `but the embedded engine works with ${pinnedVersion} only; install it with \`npm ci\`.`;

test.each([
  ["3.0.0", `node-llama-cpp is version 3.0.0, ${install}`],
  [undefined, `node-llama-cpp is not installed, ${install}`],
])("version %s is refused in one sentence", (version, sentence) => {
  expect(libraryProblem(version)).toBe(sentence);
});

test("with another version every model is unavailable and says why, and it is logged once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "plenum-library-"));
  const metadata = { "general.architecture": "llama", "llama.context_length": 512 };
  for (const name of ["one", "two"]) await writeFile(join(folder, `${name}-1b.gguf`), writeGguf({ metadata }));
  const logged: string[] = [];
  const backend = createEmbeddedBackend({
    paths: [folder],
    libraryVersion: "3.0.0",
    logger: { info: () => undefined, warn: (_details, message) => void logged.push(message) },
  });
  try {
    await backend.ready;
    const sentence = `node-llama-cpp is version 3.0.0, ${install}`;
    const states = backend.models().map(({ state, stateDetail }) => [state, stateDetail]);
    expect(states).toEqual([
      ["unavailable", sentence],
      ["unavailable", sentence],
    ]);
    expect(logged.filter((message) => message === "the embedded engine can't be used")).toHaveLength(1);
    const input = { kind: "completion", prompt: "x", raw: true } as const;
    const request = { ...requestDefaults, model: "one:1b", input };
    const answer = backend.respond(request, () => undefined, new AbortController().signal);
    await expect(answer).rejects.toMatchObject({ code: "backend-error", message: sentence });
    expect(backend.processes()).toEqual([]);
  } finally {
    await backend.close();
    await rm(folder, { recursive: true });
  }
});

/** Parts of the library without one of the methods that the engine uses. */
test.each<[string, () => unknown, string]>([
  ["a context", () => openAddonContext({ _ctx: { initBatch() {} } }), "its context lacks addToBatch"],
  ["a context under another name", () => openAddonContext({}), "its context lacks initBatch"],
  ["a model", () => openAddonModel(stub({ _model: {} })), "its model lacks tokenize"],
  ["the library", () => openSamplers(stub({ llama: { _bindings: {} } }), stub({})), "its library lacks AddonSampler"],
])("%s without a method that the engine uses is refused in one sentence", (_name, open, lacks) => {
  expect(open).toThrow(
    `This build of node-llama-cpp does not fit Plenum: ${lacks}. Install the version that package-lock.json names (npm ci).`,
  );
});

function stub(value: object): LlamaModel & ReturnType<typeof openAddonModel> {
  return value as LlamaModel & ReturnType<typeof openAddonModel>;
}
