import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type BackendEvent, requestDefaults } from "@plenum/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEmbeddedBackend } from "../index.ts";
import { pinnedVersion } from "../library-version.ts";
import { ModelRunner } from "../model-runner.ts";
import { putBuild } from "../testing/fake-build.ts";
import { chatModelFile, missingModels } from "../testing/model-files.ts";
import { probeBuild } from "./probe.ts";

const timeoutMs = 120_000;
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum probe ü-"));
});
afterEach(() => rm(home, { recursive: true }));

describe.runIf(process.platform === "linux" && process.arch === "x64")("builds", { timeout: timeoutMs }, () => {
  test.each([
    ["cuda", "linux-x64-cuda\nlinux-x64-cuda-ext\n"],
    ["vulkan", "linux-x64-vulkan\n"],
  ] as const)("the library in the child takes %s from the build's folder", async (kind, asked) => {
    const marker = join(home, "asked");
    const folder = await putBuild({ home, kind, marker });
    const probe = await probeBuild({ kind, version: pinnedVersion, folder });
    expect(await readFile(marker, "utf8").then((text) => text.split("\n").sort().join("\n").trim())).toBe(asked.trim());
    // Its folder of binaries is empty.
    expect(probe).toMatchObject({ loads: false });
  });

  test("a folder that is gone does not load", async () => {
    const build = { kind: "cuda", version: pinnedVersion, folder: join(home, "gone") } as const;
    expect(await probeBuild(build)).toMatchObject({ loads: false });
  });

  test("a try that is stopped rejects, one that takes too long does not load", async () => {
    const build = { kind: "cuda", version: pinnedVersion, folder: join(home, "gone") } as const;
    const stopped = probeBuild(build, { signal: AbortSignal.abort(new Error("enough")) });
    await expect(stopped).rejects.toThrow("enough");
    expect(await probeBuild(build, { timeoutMs: 1 })).toEqual({ loads: false, reason: "no answer within 0.001 s" });
  });

  test.skipIf(missingModels !== undefined)(
    "a GPU that fails a model later: one line, and the processor loads it",
    async () => {
      const gpu = { kind: "cuda", version: pinnedVersion, folder: join(home, "gone") } as const;
      const config = { modelPath: chatModelFile(), use: "text", contextTokens: 512, parallel: 1 } as const;
      const lines: string[] = [];
      const runner = new ModelRunner({
        model: "smollm2:135m",
        loadTimeoutMs: timeoutMs,
        keepAliveMs: -1,
        logger: { info: () => undefined, warn: (_details, message) => void lines.push(message) },
        prepare: async () => ({ ...config, vocabularySize: 49_152, gpu }),
        onChange: () => undefined,
      });
      try {
        await runner.acquire(new AbortController().signal);
        expect(runner.state).toBe("loaded");
        expect(lines).toEqual(["model does not load on the GPU; it is loaded on the processor"]);
      } finally {
        await runner.close();
      }
    },
  );

  test.skipIf(missingModels !== undefined)(
    "a build that does not load: one line, and the processor answers",
    async () => {
      await putBuild({ home, kind: "cuda" });
      const lines: string[] = [];
      const backend = createEmbeddedBackend({
        paths: [dirname(chatModelFile())],
        home,
        contextTokens: 512,
        logger: { info: () => undefined, warn: (_details, message) => void lines.push(message) },
      });
      try {
        const events: BackendEvent[] = [];
        const request = {
          ...requestDefaults,
          model: "smollm2:135m",
          input: { kind: "completion", prompt: "Once", raw: true } as const,
          output: { format: { type: "text" }, maxTokens: 3 } as const,
        };
        await backend.respond(request, (batch) => events.push(...batch), new AbortController().signal);
        expect(events).toContainEqual(expect.objectContaining({ type: "finish" }));
        expect(lines).toEqual(["no GPU build loads; models run on the processor"]);
      } finally {
        await backend.close();
      }
    },
  );
});
