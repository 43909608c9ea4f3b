import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chatModelFile, missingModels } from "./backends/embedded/testing/model-files.ts";
import { loadConfig } from "./config/index.ts";
import { FileHost, sha256Of } from "./model-files/testing/file-host.ts";
import { createServer, type PlenumServer } from "./server.ts";

/** A whole service with the real engine, whose models come and go over its own interface. */
describe.skipIf(missingModels !== undefined)("models of a running service", { timeout: 180_000 }, () => {
  let home: string;
  let server: PlenumServer;

  async function start(): Promise<void> {
    const config = await loadConfig({
      flags: { home, port: 0, starterModel: false, localRuntimes: false },
      env: {},
      cwd: home,
      preset: [
        { path: ["discovery"], value: false, origin: "test" },
        { path: ["embedded", "context_tokens"], value: 512, origin: "test" },
        { path: ["aliases"], value: { "gpt-4o": "one:1b" }, origin: "test" },
      ],
    });
    server = await createServer(config, { logger: pino({ level: "silent" }) });
    await server.listen();
  }

  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), "plenum-service-models-"));
    await start();
  });
  afterEach(async () => {
    await server.close({ drainMs: 0 });
    await rm(home, { recursive: true, force: true });
  });

  async function call(method: string, path: string, body?: object) {
    const answer = await fetch(server.url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  /** The task as it ended. */
  async function task(request: object) {
    const accepted = await call("POST", "/lmsp/v1/tasks", request);
    expect(accepted.status, JSON.stringify(accepted.body)).toBe(202);
    const events = await fetch(`${server.url}/lmsp/v1/tasks/${accepted.body.id}/events`);
    await events.text();
    return (await call("GET", `/lmsp/v1/tasks/${accepted.body.id}`)).body;
  }

  const model = async (id: string) => (await call("GET", `/lmsp/v1/models/${id}`)).body;

  test("a registered file is served over a restart, loaded, unloaded, and stays when it is deleted", async () => {
    const path = join(home, "elsewhere", "one-1b.gguf");
    await mkdir(join(home, "elsewhere"));
    await copyFile(chatModelFile(), path);
    const pulled = await task({ kind: "model.pull", source: path });
    expect(pulled).toMatchObject({ state: "succeeded", result: { models: ["one:1b"] } });
    await call("POST", "/api/copy", { source: "one:1b", destination: "mine" });
    await server.close({ drainMs: 0 });
    await start();
    expect(await model("mine")).toMatchObject({ id: "one:1b", aliases: expect.arrayContaining(["mine", "gpt-4o"]) });
    expect(await task({ kind: "model.load", model: "gpt-4o", keep_alive: -1 })).toMatchObject({ state: "succeeded" });
    expect(await model("one:1b")).toMatchObject({ state: "loaded" });
    expect(await task({ kind: "model.unload", model: "mine" })).toMatchObject({ state: "succeeded" });
    expect(await model("one:1b")).toMatchObject({ state: "available" });
    expect((await call("DELETE", "/lmsp/v1/models/gpt-4o")).status).toBe(409);
    expect((await call("DELETE", "/lmsp/v1/models/one:1b")).status).toBe(204);
    expect(await model("one:1b")).toMatchObject({ status: 404 });
    expect(existsSync(path)).toBe(true);
  });

  test("a downloaded file is served at once, and gone when it is deleted", async () => {
    const host = await new FileHost().start();
    try {
      const bytes = await readFile(chatModelFile());
      // The connection breaks twice on the way.
      host.files.set("/one-1b.gguf", { bytes, etag: '"v1"', cuts: [20_000_000, 30_000_000] });
      const begun = performance.now();
      const pulled = await task({ kind: "model.pull", source: `${host.url}/one-1b.gguf`, sha256: sha256Of(bytes) });
      const seconds = (performance.now() - begun) / 1000;
      process.stdout.write(
        `measured: pull of ${bytes.length} bytes over loopback ${(bytes.length / 1e6 / seconds).toFixed(0)} MB/s\n`,
      );
      expect(pulled).toMatchObject({
        state: "succeeded",
        progress: { total: bytes.length, unit: "bytes" },
        result: { models: ["one:1b"], size_bytes: bytes.length, sha256: [sha256Of(bytes)] },
      });
      const asked = { model: "one:1b", input: "Hi", output: { max_tokens: 2 } };
      expect((await call("POST", "/lmsp/v1/responses", asked)).body).toMatchObject({ runtime: "embedded" });
      expect((await call("DELETE", "/lmsp/v1/models/one:1b")).status).toBe(204);
      expect(await readdir(join(home, "models"))).toEqual([]);
      expect((await call("GET", "/lmsp/v1/models")).body.data).toEqual([]);
    } finally {
      await host.stop();
    }
  });

  test("a pull that fails says why, and nothing is left", async () => {
    const host = await new FileHost().start();
    try {
      const failed = await task({ kind: "model.pull", source: `${host.url}/none.gguf` });
      expect(failed).toMatchObject({
        state: "failed",
        problem: { type: "urn:lmsp:problem:not-found", param: "source" },
      });
      expect((await call("POST", "/lmsp/v1/tasks", { kind: "model.pull", source: "?" })).body).toMatchObject({
        status: 400,
        param: "source",
      });
    } finally {
      await host.stop();
    }
  });
});
