/**
 * The hub here is a stand-in on this machine, written after the hub's documented API (`GET /api/models/…?blobs=true` and
 * `/…/resolve/<commit>/<path>`); the real one has not been asked.
 */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Backend, createMemoryStorage, type SettingsStore, type TaskProgress } from "@plenum/core";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ModelLibrary } from "./model-library.ts";
import { ModelPuller, type ModelPullerOptions } from "./model-puller.ts";
import { parsePullSource } from "./pull-source.ts";
import { FileHost, ggufBytes, sha256Of } from "./testing/file-host.ts";

let root: string;
let folder: string;
let host: FileHost;
let settings: SettingsStore;
let library: ModelLibrary;
let scans: number;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "plenum-pull-"));
  folder = join(root, "models");
  host = await new FileHost().start();
  const storage = createMemoryStorage({ bytesPerResponse: 4096, bytesTotal: 65_536 });
  settings = storage.settings;
  library = new ModelLibrary(folder, settings);
  await library.load();
  scans = 0;
});
afterEach(async () => {
  await host.stop();
  await rm(root, { recursive: true });
});

function puller(changes: Partial<ModelPullerOptions> = {}): ModelPuller {
  return new ModelPuller({
    library,
    hub: changes.hub ?? { url: host.url },
    runtimes: () => [],
    hasModel: () => false,
    server: {
      rescan: async () => void scans++,
      modelsOf: (paths) => paths.map((path) => path.slice(path.lastIndexOf("/") + 1)),
    },
    timeouts: { retryDelayMs: 1, connectTimeoutMs: 1000, stallTimeoutMs: 1000 },
    ...changes,
  });
}

const never = new AbortController().signal;

async function pull(
  source: string,
  changes: Partial<ModelPullerOptions> & {
    sha256?: string;
    signal?: AbortSignal;
    onProgress?: (step: TaskProgress) => void;
  } = {},
) {
  const progress: TaskProgress[] = [];
  const { sha256, signal = never, onProgress, ...options } = changes;
  const result = await puller(options).pull(parsePullSource(source, sha256), {
    onProgress: (step) => {
      progress.push(step);
      onProgress?.(step);
    },
    signal,
  });
  return { result, progress };
}

const commit = "0123456789abcdef0123456789abcdef01234567";

/** A repository as the hub shows it: `lfs` where the file is large, which all weights are. */
function serveRepository(
  name: string,
  files: Readonly<Record<string, Buffer>>,
  lie: Buffer | undefined = undefined,
): void {
  const siblings = Object.entries(files).map(([rfilename, bytes]) => {
    const lfs = { sha256: sha256Of(lie ?? bytes), size: bytes.length, pointerSize: 134 };
    return { rfilename, size: bytes.length, blobId: "b".repeat(40), ...(rfilename.endsWith(".gguf") ? { lfs } : {}) };
  });
  host.documents.set(`/api/models/${name}?blobs=true`, { id: name, sha: commit, gated: false, siblings });
  for (const [path, bytes] of Object.entries(files)) {
    host.files.set(`/${name}/resolve/${commit}/${path}`, { bytes, etag: `"${sha256Of(bytes)}"` });
  }
}

const resolved = (path: string) => `/acme/tiny-GGUF/resolve/${commit}/${path}`;

async function namesIn(path: string): Promise<readonly string[]> {
  return existsSync(path) ? (await readdir(path)).sort() : [];
}

describe("from the hub", () => {
  const small = ggufBytes(100_000);
  const large = ggufBytes(200_000, 5);

  beforeEach(() => {
    serveRepository("acme/tiny-GGUF", {
      "README.md": Buffer.from("#"),
      "tiny-Q8_0.gguf": large,
      "tiny-Q4_K_M.gguf": small,
    });
  });

  test("the chosen file comes into a folder of its own, verified, and is looked for", async () => {
    const { result, progress } = await pull("hf:acme/tiny-GGUF");
    const path = join(folder, "acme--tiny-GGUF", "tiny-Q4_K_M.gguf");
    expect(small.equals(await readFile(path))).toBe(true);
    expect(result).toEqual({ models: ["tiny-Q4_K_M.gguf"], size_bytes: small.length, sha256: [sha256Of(small)] });
    expect(await namesIn(join(folder, "acme--tiny-GGUF"))).toEqual([
      ".tiny-Q4_K_M.gguf.origin.json",
      "tiny-Q4_K_M.gguf",
    ]);
    expect(progress[0]).toEqual({ done: 0, unit: "bytes", step: "finding files" });
    expect(progress.at(-2)).toMatchObject({
      done: small.length,
      total: small.length,
      step: "pulling tiny-Q4_K_M.gguf",
    });
    expect(scans).toBe(1);
  });

  test("a second pull fetches nothing; a new version of the file takes the old one's place", async () => {
    await pull("hf:acme/tiny-GGUF:Q8_0");
    await pull("hf:acme/tiny-GGUF:q8_0");
    expect(host.ranges(resolved("tiny-Q8_0.gguf"))).toEqual(["all"]);
    const next = ggufBytes(150_000, 3);
    serveRepository("acme/tiny-GGUF", { "tiny-Q8_0.gguf": next });
    await pull("hf:acme/tiny-GGUF:Q8_0");
    expect(next.equals(await readFile(join(folder, "acme--tiny-GGUF", "tiny-Q8_0.gguf")))).toBe(true);
  });

  test("a split model comes with all parts; the first is placed last", async () => {
    const parts = [1, 2, 3].map((part) => ggufBytes(50_000 + part, part));
    const names = [1, 2, 3].map((part) => `Q4_K_M/big-Q4_K_M-0000${part}-of-00003.gguf`);
    serveRepository(
      "acme/big",
      Object.fromEntries(names.map((name, index) => [name, parts[index] ?? Buffer.alloc(0)])),
    );
    const { result, progress } = await pull("hf:acme/big:Q4_K_M");
    expect(result.sha256).toEqual(parts.map(sha256Of));
    const total = 150_006;
    expect(progress.map(({ total: all }) => all).filter((all) => all !== undefined)).toContain(total);
    expect(progress.at(-1)).toMatchObject({ done: total });
    expect((await namesIn(join(folder, "acme--big"))).filter((name) => !name.startsWith("."))).toEqual(
      names.map((name) => name.slice("Q4_K_M/".length)),
    );
  });

  test("the token goes to the hub alone, and into no message", async () => {
    const other = await new FileHost().start();
    try {
      const path = resolved("tiny-Q4_K_M.gguf");
      other.files.set("/blob", { bytes: small });
      host.files.set(path, { bytes: small, redirect: `${other.url}/blob` });
      await pull("hf:acme/tiny-GGUF", { hub: { url: host.url, token: "hf_secret" } });
      expect(host.seen.map(({ authorization }) => authorization)).toEqual(["Bearer hf_secret", "Bearer hf_secret"]);
      expect(other.seen[0]?.authorization).toBeUndefined();
      const problem = await pull("hf:acme/none", { hub: { url: host.url, token: "hf_secret" } }).catch(String);
      expect(problem).toContain("HF_TOKEN");
      expect(problem).not.toContain("hf_secret");
    } finally {
      await other.stop();
    }
  });

  test("names in the list never lead out of the models folder", async () => {
    const name = "..%2f..%2fout.gguf";
    host.documents.set("/api/models/acme/evil?blobs=true", {
      sha: commit,
      siblings: [
        {
          rfilename: "../../../out-Q4_0.gguf",
          size: small.length,
          lfs: { sha256: sha256Of(small), size: small.length },
        },
      ],
    });
    // The client itself takes the dots out of an address.
    for (const path of [`/acme/evil/resolve/${commit}/${name}`, "/acme/out-Q4_0.gguf", "/out-Q4_0.gguf"]) {
      host.files.set(path, { bytes: small });
    }
    await pull("hf:acme/evil").catch(() => undefined);
    expect(
      (await readdir(root, { recursive: true })).filter(
        (path) => path.endsWith(".gguf") && !path.startsWith("models/acme--evil/"),
      ),
    ).toEqual([]);
  });

  test.each([
    ["no such repository", "hf:acme/none", "not-found"],
    ["no such quantization", "hf:acme/tiny-GGUF:Q2_K", "invalid-request"],
  ])("%s", async (_name, source, code) => {
    await expect(pull(source)).rejects.toMatchObject({ code, details: { param: "source" } });
  });

  test.each([
    ["a page", "<html>", "backend-error"],
    ["a list without a commit", { siblings: [] }, "backend-error"],
  ])("the hub answers %s", async (_name, document, code) => {
    host.documents.set("/api/models/acme/odd?blobs=true", document);
    await expect(pull("hf:acme/odd")).rejects.toMatchObject({ code });
  });

  test("the hub is not there", async () => {
    const url = host.url;
    await host.stop();
    await expect(pull("hf:acme/tiny-GGUF", { hub: { url } })).rejects.toMatchObject({ code: "backend-unavailable" });
    host = await new FileHost().start();
  });

  test("another file than the hub's hash says is not placed", async () => {
    serveRepository("acme/tiny-GGUF", { "tiny-Q4_K_M.gguf": small }, large);
    await expect(pull("hf:acme/tiny-GGUF")).rejects.toMatchObject({
      code: "backend-error",
      detail: expect.stringMatching(/its sha256 is .* nothing was placed\.$/),
    });
    expect(await namesIn(join(folder, "acme--tiny-GGUF"))).toEqual([]);
    expect(scans).toBe(0);
  });
});

describe("from a URL", () => {
  const bytes = ggufBytes(120_000);
  const url = () => `${host.url}/files/my%20model.gguf?key=1`;

  beforeEach(() => {
    host.files.set("/files/my%20model.gguf?key=1", { bytes, etag: '"v1"' });
  });

  test("with its hash, under a safe name", async () => {
    const { result } = await pull(`${url()}#sha256=${sha256Of(bytes)}`);
    expect(result.models).toEqual(["my_model.gguf"]);
    expect(bytes.equals(await readFile(join(folder, "my_model.gguf")))).toBe(true);
  });

  test("without a hash the entity tag tells whether it is there already", async () => {
    await pull(url());
    await pull(url());
    expect(host.seen.map(({ ifNoneMatch }) => ifNoneMatch)).toEqual([undefined, '"v1"']);
    const next = ggufBytes(90_000, 3);
    host.files.set("/files/my%20model.gguf?key=1", { bytes: next, etag: '"v2"' });
    await pull(url());
    expect(next.equals(await readFile(join(folder, "my_model.gguf")))).toBe(true);
  });

  test("a wrong hash", async () => {
    await expect(pull(url(), { sha256: "0".repeat(64) })).rejects.toMatchObject({ code: "backend-error" });
    expect(await namesIn(folder)).toEqual([]);
  });

  test("a web page under a model's name", async () => {
    host.files.set("/page.gguf", { bytes: Buffer.from("<html>Sign in</html>") });
    await expect(pull(`${host.url}/page.gguf`)).rejects.toMatchObject({
      detail: expect.stringContaining("no GGUF file"),
    });
  });

  test("a name that something else has: conflict, and the file stays", async () => {
    await mkdir(folder);
    await writeFile(join(folder, "my_model.gguf"), "mine");
    await expect(pull(url())).rejects.toMatchObject({ code: "conflict" });
    expect(await readFile(join(folder, "my_model.gguf"), "utf8")).toBe("mine");
  });

  test("the same file put there by hand is taken as it is", async () => {
    await mkdir(folder);
    await writeFile(join(folder, "my_model.gguf"), bytes);
    const { result } = await pull(url(), { sha256: sha256Of(bytes) });
    expect(result.sha256).toEqual([sha256Of(bytes)]);
    expect(host.seen).toEqual([]);
  });

  test("all parts of a split model, each with its hash", async () => {
    const parts = [ggufBytes(1000, 3), ggufBytes(2000, 5)];
    for (const [index, part] of parts.entries()) host.files.set(`/s-0000${index + 1}-of-00002.gguf`, { bytes: part });
    const first = `${host.url}/s-00001-of-00002.gguf`;
    await expect(pull(first, { sha256: sha256Of(bytes) })).rejects.toMatchObject({ details: { param: "sha256" } });
    await expect(pull(`${host.url}/s-00002-of-00002.gguf`)).rejects.toMatchObject({ details: { param: "source" } });
    const { result } = await pull(first, { sha256: parts.map(sha256Of).join(",") });
    expect(result.size_bytes).toBe(3000);
    expect(await stat(join(folder, "s-00002-of-00002.gguf"))).toMatchObject({ size: 2000 });
  });

  test("cancelled: what came stays; the next pull goes on", async () => {
    const file = host.files.get("/files/my%20model.gguf?key=1");
    if (file === undefined) throw new Error("no file");
    file.stallAfter = 60_000;
    const abort = new AbortController();
    const onProgress = ({ done }: TaskProgress) => done === 60_000 && abort.abort(new Error("cancelled"));
    await expect(pull(url(), { signal: abort.signal, onProgress })).rejects.toThrow("cancelled");
    expect(await namesIn(folder)).toEqual(["my_model.gguf.part", "my_model.gguf.part.json"]);
    delete file.stallAfter;
    await pull(url());
    expect(host.seen.at(-1)).toMatchObject({ range: expect.stringMatching(/^bytes=[1-9]\d*-$/), ifRange: '"v1"' });
    expect(await namesIn(folder)).toEqual([".my_model.gguf.origin.json", "my_model.gguf"]);
  });

  test("two pulls of one source are one download; it ends when the last has left", async () => {
    const file = host.files.get("/files/my%20model.gguf?key=1");
    if (file === undefined) throw new Error("no file");
    file.stallAfter = 60_000;
    const stalled = new Promise<void>((resolve) => {
      host.onStall = resolve;
    });
    const shared = puller();
    const aborts = [new AbortController(), new AbortController()];
    const seen: TaskProgress[][] = [[], []];
    const [first, second] = aborts.map(({ signal }, index) =>
      shared.pull(parsePullSource(url()), { signal, onProgress: (step) => seen[index]?.push(step) }),
    );
    await stalled;
    aborts[0]?.abort(new Error("first"));
    await expect(first).rejects.toThrow("first");
    expect(host.seen).toHaveLength(1);
    aborts[1]?.abort(new Error("second"));
    // Begun while the one that everybody left still ends.
    delete file.stallAfter;
    const third = shared.pull(parsePullSource(url()), { signal: never, onProgress: () => {} });
    await expect(second).rejects.toThrow("second");
    expect(await third).toMatchObject({ size_bytes: bytes.length });
    expect(bytes.equals(await readFile(join(folder, "my_model.gguf")))).toBe(true);
    expect(host.seen.length).toBeLessThanOrEqual(2);
  });
});

describe("files of this machine", () => {
  const bytes = ggufBytes(1000);
  let elsewhere: string;

  beforeEach(async () => {
    elsewhere = join(root, "elsewhere");
    await mkdir(elsewhere);
    for (const name of ["a.gguf", "b.gguf", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"]) {
      await writeFile(join(elsewhere, name), bytes);
    }
    await writeFile(join(elsewhere, "text.gguf"), "hello");
  });

  test("a file is registered where it lies, also over a restart, and unregistered by its removal", async () => {
    const path = join(elsewhere, "a.gguf");
    expect((await pull(path)).result).toEqual({ models: ["a.gguf"] });
    expect(await namesIn(folder)).toEqual([]);
    const restarted = new ModelLibrary(folder, settings);
    await restarted.load();
    expect(restarted.registered).toEqual([path]);
    await restarted.remove(path);
    expect(restarted.registered).toEqual([]);
    expect(existsSync(path)).toBe(true);
  });

  test("any part of a split model registers all of it", async () => {
    await pull(join(elsewhere, "s-00002-of-00002.gguf"));
    expect(library.registered).toEqual([join(elsewhere, "s-00001-of-00002.gguf")]);
  });

  test("a folder is registered as a whole; without one of its models the others stay", async () => {
    await pull(elsewhere);
    expect(library.registered).toEqual([elsewhere]);
    await library.remove(join(elsewhere, "a.gguf"));
    expect(library.registered).toEqual(
      ["b.gguf", "s-00001-of-00002.gguf", "text.gguf"].map((name) => join(elsewhere, name)),
    );
    expect(existsSync(join(elsewhere, "a.gguf"))).toBe(true);
  });

  test("a file of the models folder needs no registration", async () => {
    await mkdir(folder);
    await writeFile(join(folder, "c.gguf"), bytes);
    await pull(join(folder, "c.gguf"));
    expect(library.registered).toEqual([]);
    expect(scans).toBe(1);
  });

  test.each([["/none"], ["/text.gguf"], ["/../empty"]])("%s is refused", async (name) => {
    await mkdir(join(root, "empty"));
    await expect(pull(`${elsewhere}${name}`)).rejects.toMatchObject({
      code: "invalid-request",
      details: { param: "source" },
    });
  });
});

describe("what was placed goes, what was not stays", () => {
  test("files, records and an empty folder", async () => {
    serveRepository("acme/tiny-GGUF", { "tiny-Q4_0.gguf": ggufBytes(1000) });
    await pull("hf:acme/tiny-GGUF");
    await library.remove(join(folder, "acme--tiny-GGUF", "tiny-Q4_0.gguf"));
    expect(await namesIn(folder)).toEqual([]);
  });

  test("a file that somebody put there: conflict", async () => {
    await mkdir(folder);
    await writeFile(join(folder, "mine.gguf"), ggufBytes(100));
    await expect(library.remove(join(folder, "mine.gguf"))).rejects.toMatchObject({ code: "conflict" });
    expect(await namesIn(folder)).toEqual(["mine.gguf"]);
  });

  test("a record that names files elsewhere removes nothing there", async () => {
    await mkdir(folder);
    await writeFile(join(root, "victim.gguf"), "x");
    await writeFile(join(folder, "m.gguf"), ggufBytes(100));
    const files = [{ name: "../victim.gguf", sizeBytes: 1, sha256: "0" }];
    await writeFile(join(folder, ".m.gguf.origin.json"), JSON.stringify({ source: "x", files, placedAt: "" }));
    await library.remove(join(folder, "m.gguf"));
    expect(existsSync(join(root, "victim.gguf"))).toBe(true);
  });
});

describe("by a name", () => {
  function ollama(id: string, isDown = false): Backend & { readonly pulled: string[] } {
    const pulled: string[] = [];
    return Object.assign(new ScriptedBackend(id, []), {
      kind: "ollama",
      pulled,
      health: () => ({ state: isDown ? ("unavailable" as const) : ("healthy" as const) }),
      pull: async (name: string) => void pulled.push(name),
    });
  }

  test("through the first Ollama runtime that is up", async () => {
    const [down, up] = [ollama("down", true), ollama("up")];
    const runtimes = () => [new ScriptedBackend("x", [scriptedModel("m")]), down, up];
    expect((await pull("ollama:llama3.2", { runtimes })).result).toEqual({ models: ["llama3.2"] });
    await pull("qwen3:4b", { runtimes });
    expect([down.pulled, up.pulled]).toEqual([[], ["llama3.2", "qwen3:4b"]]);
  });

  test("without one: what is there already, or a problem that says what to do", async () => {
    await expect(pull("ollama:m")).rejects.toMatchObject({ code: "backend-unavailable" });
    await expect(pull("m")).rejects.toMatchObject({ code: "not-found", details: { param: "source" } });
    expect((await pull("m", { hasModel: (name) => name === "m" })).result).toEqual({ models: ["m"] });
  });
});

test("files are not fetched for an engine that is switched off", async () => {
  const off = puller();
  const without = new ModelPuller({ library, hub: { url: host.url }, runtimes: () => [], hasModel: () => false });
  expect(off).not.toBe(without);
  for (const source of ["hf:acme/tiny-GGUF", `${host.url}/m.gguf`, "/tmp", "starter"]) {
    await expect(without.pull(parsePullSource(source), { signal: never, onProgress: () => {} })).rejects.toMatchObject({
      code: "unsupported-operation",
    });
  }
});
