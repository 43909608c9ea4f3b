import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CoreError } from "@plenum/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DownloadOptions, download } from "./download.ts";
import { DownloadError } from "./download-error.ts";
import { readPartState, writePartState } from "./part-file.ts";
import type { RemoteFile } from "./remote-file.ts";
import { FileHost, ggufBytes, type ServedFile, sha256Of } from "./testing/file-host.ts";

let folder: string;
let part: string;
let host: FileHost;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-download-"));
  part = join(folder, "m.gguf.part");
  host = await new FileHost().start();
});
afterEach(async () => {
  await host.stop();
  await rm(folder, { recursive: true });
});

const bytes = ggufBytes(300_000);
const path = "/m.gguf";
const never = new AbortController().signal;

function serve(changes: Partial<ServedFile> = {}): ServedFile {
  const file: ServedFile = { bytes, etag: '"v1"', ...changes };
  host.files.set(path, file);
  return file;
}

const hashed = { sha256: sha256Of(bytes) };

function get(expected: Partial<RemoteFile> = {}, options: Partial<DownloadOptions> = {}) {
  const base = { onBytes: () => {}, signal: never, retryDelayMs: 1, connectTimeoutMs: 1000, stallTimeoutMs: 1000 };
  return download({ url: `${host.url}${path}`, ...expected }, part, { ...base, ...options });
}

async function failure(promise: Promise<unknown>): Promise<DownloadError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof DownloadError) return error;
  throw error ?? new Error("it did not fail");
}

const isWhole = async () => bytes.equals(await readFile(part));

test("bytes, size, hash and entity tag come whole, with progress", async () => {
  serve();
  const told: [number, number | undefined][] = [];
  const got = await get({}, { onBytes: (...progress) => told.push(progress) });
  expect(got).toEqual({ sizeBytes: bytes.length, sha256: hashed.sha256, etag: '"v1"' });
  expect(await isWhole()).toBe(true);
  expect(told.at(-1)).toEqual([bytes.length, bytes.length]);
});

describe("a connection that breaks", () => {
  test("again and again: goes on each time from where it stopped, under the same entity tag", async () => {
    serve({ cuts: [50_000, 50_000, 50_000, 50_000, 50_000] });
    await get();
    expect(await isWhole()).toBe(true);
    const later = host.seen.filter(({ range }) => range !== undefined);
    expect(later.length).toBeGreaterThan(1);
    const starts = later.map(({ range = "" }) => Number(/^bytes=(\d+)-$/.exec(range)?.[1]));
    expect(starts).toEqual(starts.toSorted((one, other) => one - other));
    expect(new Set(later.map(({ ifRange }) => ifRange))).toEqual(new Set(['"v1"']));
  });

  test("without a byte, three times: gives up and keeps what was there", async () => {
    serve({ cuts: [50_000, 0, 0, 0, 0] });
    const error = await failure(get());
    expect(error).toMatchObject({ kind: "broken" });
    expect((await readFile(part)).length).toBe(50_000);
    expect(await readPartState(part)).toEqual({ url: `${host.url}${path}`, etag: '"v1"', sizeBytes: bytes.length });
    await get();
    expect(await isWhole()).toBe(true);
    expect(host.ranges(path).at(-1)).toBe("bytes=50000-");
  });

  test("under no length that was told: goes on", async () => {
    serve({ isChunked: true, cuts: [50_000] });
    await get();
    expect(await isWhole()).toBe(true);
  });
});

describe("what an earlier try left", () => {
  const state = (changes: object = {}) => ({
    url: `${host.url}${path}`,
    etag: '"v1"',
    sizeBytes: bytes.length,
    ...changes,
  });
  const leave = async (content: Buffer, known?: Parameters<typeof writePartState>[1]) => {
    await writeFile(part, content);
    if (known !== undefined) await writePartState(part, known);
  };
  const half = bytes.subarray(0, 150_000);

  test("another entity tag: the file comes as a whole", async () => {
    serve({ etag: '"v2"' });
    await leave(ggufBytes(150_000, 3), state());
    await get();
    expect(await isWhole()).toBe(true);
    expect(host.seen).toMatchObject([{ range: "bytes=150000-", ifRange: '"v1"' }]);
  });

  test("the entity tag changes while it goes on: the whole new file, not a mixture", async () => {
    const file = serve({ cuts: [100_000] });
    file.etag = '"v0"';
    const old = ggufBytes(300_000, 3);
    file.bytes = old;
    let isSwapped = false;
    await get(
      {},
      {
        onBytes: (done) => {
          if (done < 100_000 || isSwapped) return;
          isSwapped = true;
          Object.assign(file, { bytes, etag: '"v1"' });
        },
      },
    );
    expect(isSwapped).toBe(true);
    expect(await isWhole()).toBe(true);
  });

  test.each([
    ["nothing known of it", () => undefined],
    ["no entity tag", () => ({ url: `${host.url}${path}` })],
    ["another address", () => state({ url: `${host.url}/other` })],
    ["longer than the file", () => state({ sizeBytes: 10 })],
  ])("%s and no hash: begun anew", async (_name, known) => {
    serve();
    await leave(ggufBytes(150_000, 3), known());
    await get();
    expect(host.ranges(path)).toEqual(["all"]);
    expect(await isWhole()).toBe(true);
  });

  test("nothing known of it, but a hash: gone on with", async () => {
    serve();
    await leave(half);
    await get(hashed);
    expect(host.ranges(path)).toEqual(["bytes=150000-"]);
    expect(await isWhole()).toBe(true);
  });

  test("a hash that then differs: begun anew once", async () => {
    serve();
    await leave(ggufBytes(150_000, 3));
    expect(await get(hashed)).toMatchObject(hashed);
    expect(host.ranges(path)).toEqual(["bytes=150000-", "all"]);
  });

  test("whole already: nothing is asked for", async () => {
    serve();
    await leave(bytes, state());
    expect(await get(hashed)).toMatchObject(hashed);
    expect(host.seen).toEqual([]);
  });

  test("a weak entity tag is no proof", async () => {
    serve({ etag: 'W/"v1"', cuts: [50_000] });
    await get();
    expect(host.ranges(path)).toEqual(["all", "all"]);
    expect(await isWhole()).toBe(true);
  });

  test.each([
    ["other bytes than asked for", { wrongStart: 1 }],
    ["416", { bytes: bytes.subarray(0, 100_000) }],
  ])("%s: begun anew", async (_name, changes) => {
    const file = serve(changes);
    await leave(half, state({ sizeBytes: undefined }));
    const asking = get();
    if (file.wrongStart !== undefined) {
      while (host.seen.length === 0) await new Promise((resolve) => setImmediate(resolve));
      delete file.wrongStart;
    }
    await asking;
    expect((await readFile(part)).equals(file.bytes)).toBe(true);
    expect(host.ranges(path).at(-1)).toBe("all");
  });

  test("no ranges: the whole file", async () => {
    serve({ hasRanges: false, cuts: [50_000] });
    await get(hashed);
    expect(host.ranges(path)).toEqual(["all", "bytes=50000-"]);
    expect(await isWhole()).toBe(true);
  });
});

describe("is refused", () => {
  test.each([
    ["another hash", { bytes: ggufBytes(300_000, 3) }, hashed, {}, "mismatch", /its sha256 is [0-9a-f]{64}, not /],
    ["another size", {}, { sizeBytes: 299_999 }, {}, "mismatch", /300000 bytes, not 299999/],
    ["more than was told", { isChunked: true }, { sizeBytes: 299_999 }, {}, "mismatch", /more than the file has/],
    ["no GGUF", { bytes: Buffer.from("<html>".repeat(100)) }, {}, { magic: "GGUF" }, "mismatch", /no GGUF file/],
    ["404", { refusals: [404] }, {}, {}, "refused", /404/],
    [
      "silence",
      { stallAfter: 100, etag: 'W/"v1"' },
      {},
      { stallTimeoutMs: 50, fruitlessAttempts: 1 },
      "broken",
      /fell silent|broke off/,
    ],
    ["a redirect to http elsewhere", { redirect: "http://192.0.2.1/m.gguf" }, {}, {}, "broken", /not followed/],
    ["a redirect to a file", { redirect: "file:///etc/passwd" }, {}, {}, "broken", /not followed/],
    ["redirects without an end", { redirect: path }, {}, {}, "broken", /more than 5 times/],
  ])("%s", async (_name, changes: Partial<ServedFile>, expected, options: Partial<DownloadOptions>, kind, message) => {
    serve(changes);
    const error = await failure(get(expected, options));
    expect(error).toMatchObject({ kind });
    expect(error.message).toMatch(message);
  });

  test("an address that is not asked", async () => {
    for (const url of ["http://192.0.2.1/m.gguf", "ftp://127.0.0.1/m", "file:///m"]) {
      await expect(get({ url }, { fruitlessAttempts: 1 })).rejects.toThrow(/only https addresses/);
    }
  });

  test("a wrong file leaves nothing to go on with", async () => {
    serve({ bytes: ggufBytes(300_000, 3) });
    await failure(get(hashed));
    expect(await readdir(folder)).toEqual([]);
  });

  test("what does not fit on the disk, before anything comes, with the numbers", async () => {
    serve();
    const error = await get({ sizeBytes: 2 ** 60 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CoreError);
    expect(error).toMatchObject({
      code: "insufficient-storage",
      details: { limit: expect.any(Number), requested: 2 ** 60 + 16 * 1024 * 1024 },
    });
    expect(host.seen).toEqual([]);
  });
});

test("a busy host is asked again, and gets the time that it wants", async () => {
  serve({ refusals: [503, 429], retryAfter: "0" });
  await get();
  expect(host.seen).toHaveLength(3);
});

test("a key goes to the address itself and not where it redirects", async () => {
  const other = await new FileHost().start();
  try {
    other.files.set(path, { bytes });
    serve({ redirect: `${other.url}${path}` });
    await get({ headers: { authorization: "Bearer secret" } });
    expect(host.seen[0]?.authorization).toBe("Bearer secret");
    expect(other.seen).toMatchObject([{ authorization: undefined }]);
    expect(await isWhole()).toBe(true);
  } finally {
    await other.stop();
  }
});

test("an abort keeps what came, and the next goes on", async () => {
  const file = serve({ stallAfter: 100_000 });
  const abort = new AbortController();
  const getting = get(
    {},
    {
      signal: abort.signal,
      onBytes: (done) => {
        if (done === 100_000) abort.abort(new Error("enough"));
      },
    },
  );
  await expect(getting).rejects.toThrow("enough");
  expect((await readFile(part)).length).toBe(100_000);
  delete file.stallAfter;
  await get();
  expect(host.ranges(path)).toEqual(["all", "bytes=100000-"]);
  expect(await isWhole()).toBe(true);
});
