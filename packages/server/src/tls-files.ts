import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { createSecureContext } from "node:tls";
import type { TlsFiles } from "./config/index.ts";

/** Certificate and key in PEM. */
export interface TlsPair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** @throws Error that says which option is wrong: a file that can't be read, or two that don't belong together. */
export function readTlsPair({ cert, key }: TlsFiles): TlsPair {
  const pair = { cert: readPem("tls.cert", cert), key: readPem("tls.key", key) };
  try {
    createSecureContext(pair);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`tls.cert and tls.key are no certificate and its key: ${why}`, { cause });
  }
  return pair;
}

function readPem(option: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`${option} can't be read: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

export interface TlsWatch {
  /** Told of each new pair that is good. */
  readonly onPair: (pair: TlsPair) => void;
  /** Told why files that changed are not taken: one is written after the other, or they are wrong. */
  readonly onProblem: (problem: string) => void;
  /** Milliseconds between looks. @default 5000 */
  readonly intervalMs?: number;
}

/** Looks for changed files, also of links that lead elsewhere now. @returns a function that ends it */
export function watchTlsFiles(files: TlsFiles, { onPair, onProblem, intervalMs = 5_000 }: TlsWatch): () => void {
  const look = (): void => {
    let pair: TlsPair;
    try {
      pair = readTlsPair(files);
    } catch (error) {
      onProblem(error instanceof Error ? error.message : String(error));
      return;
    }
    onPair(pair);
  };
  const paths = [files.cert, files.key];
  for (const path of paths) watchFile(path, { persistent: false, interval: intervalMs }, look);
  return () => {
    for (const path of paths) unwatchFile(path, look);
  };
}
