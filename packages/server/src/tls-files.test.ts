import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { readTlsPair, type TlsPair, watchTlsFiles } from "./tls-files.ts";

/** The fixtures of the library's own tests: for localhost, valid for a hundred years. */
const fixtures = new URL("../../nnrp/src/node/__fixtures__/", import.meta.url);

let folder: string;
let files: { readonly cert: string; readonly key: string };
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-tls-"));
  files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  for (const name of ["cert.pem", "key.pem"]) await copyFile(new URL(name, fixtures), join(folder, name));
});
afterEach(() => rm(folder, { recursive: true }));

it("reads a certificate and its key", async () => {
  expect(readTlsPair(files)).toEqual({ cert: await readFile(files.cert), key: await readFile(files.key) });
});

it.each([
  ["a missing file", "key.pem", undefined, /^tls\.key can't be read: ENOENT/],
  ["what is no certificate", "cert.pem", "hello", /^tls\.cert and tls\.key are no certificate and its key/],
])("says what is wrong: %s", async (_what, name, text, problem) => {
  if (text === undefined) await rm(join(folder, name));
  else await writeFile(join(folder, name), text);
  expect(() => readTlsPair(files)).toThrow(problem);
});

it("tells of files that change, and of a pair that is wrong", async () => {
  const told: (TlsPair | string)[] = [];
  const onPair = (pair: TlsPair): void => void told.push(pair);
  const onProblem = (problem: string): void => void told.push(problem);
  const stop = watchTlsFiles(files, { onPair, onProblem, intervalMs: 10 });
  try {
    const cert = await readFile(files.cert, "utf8");
    await writeFile(files.cert, "half a file");
    await expect.poll(() => told).toEqual([expect.stringContaining("are no certificate")]);
    await writeFile(files.cert, `${cert}\n`);
    await expect.poll(() => told.at(-1)).toMatchObject({ cert: Buffer.from(`${cert}\n`) });
  } finally {
    stop();
  }
});
