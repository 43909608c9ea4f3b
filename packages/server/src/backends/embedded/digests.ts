import type { ChildProcess } from "node:child_process";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { forkEngine } from "./fork-engine.ts";
import { sourceOrBuilt } from "./source-or-built.ts";

/** A model's file as it was when its digest was taken. */
export interface DigestedFile {
  readonly path: string;
  /** Of all files together. */
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  /** Further parts of a split model, in order: the digest is that of all its bytes, one part after the other. */
  readonly furtherPaths?: readonly string[];
}

interface Wanted {
  readonly file: DigestedFile;
  readonly resolve: (digest: string | undefined) => void;
}

const cacheFile = "gguf-digests.json";

/**
 * SHA-256 digests of model files, taken one at a time in a child process of low priority and remembered by path, size
 * and time of change.
 */
export class Digests {
  readonly #folder: string | undefined;
  #known: Promise<Map<string, string>> | undefined;
  #queue: Wanted[] = [];
  #child: ChildProcess | undefined;
  #isClosed = false;

  /** @param folder keeps the digests over restarts; undefined: nothing is kept */
  constructor(folder: string | undefined) {
    this.#folder = folder;
  }

  /** @returns `sha256:<hex>`; undefined when the file can't be read or the digests were closed. */
  async of(file: DigestedFile): Promise<string | undefined> {
    this.#known ??= this.#load();
    const known = await this.#known;
    const key = keyOf(file);
    const found = known.get(key);
    if (found !== undefined) return found;
    const digest = await this.#ask(file);
    if (digest !== undefined) {
      known.set(key, digest);
      await this.#save(known);
    }
    return digest;
  }

  /** Ends the child; what is still wanted stays unknown. */
  close(): void {
    this.#isClosed = true;
    for (const wanted of this.#queue.splice(0)) wanted.resolve(undefined);
    this.#child?.kill("SIGKILL");
    this.#child = undefined;
  }

  #ask(file: DigestedFile): Promise<string | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#queue.push({ file, resolve });
      if (this.#queue.length === 1) this.#sendNext();
    });
  }

  #sendNext(): void {
    const wanted = this.#queue[0];
    if (wanted === undefined) {
      this.#child?.kill();
      this.#child = undefined;
      return;
    }
    const child = this.#child ?? this.#start();
    this.#child = child;
    // A machine that is out of processes or descriptors gives a child that was never there.
    if (child.connected) child.send([wanted.file.path, ...(wanted.file.furtherPaths ?? [])], () => undefined);
    else this.#settle(child, undefined);
  }

  #start(): ChildProcess {
    const child = forkEngine(sourceOrBuilt("./digest-child", import.meta.url));
    child.stdout?.resume();
    child.stderr?.resume();
    child.on("message", (answer: { readonly sha256?: string }) => this.#settle(child, answer.sha256));
    child.once("exit", () => this.#settle(child, undefined));
    child.on("error", () => this.#settle(child, undefined));
    return child;
  }

  #settle(child: ChildProcess, sha256: string | undefined): void {
    if (this.#child !== child) return;
    if (!child.connected) this.#child = undefined;
    this.#queue.shift()?.resolve(sha256 === undefined ? undefined : `sha256:${sha256}`);
    this.#sendNext();
  }

  async #load(): Promise<Map<string, string>> {
    if (this.#folder === undefined) return new Map();
    try {
      const stored: unknown = JSON.parse(await readFile(join(this.#folder, cacheFile), "utf8"));
      if (typeof stored !== "object" || stored === null) return new Map();
      return new Map(Object.entries(stored).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
    } catch {
      // Missing or damaged: the digests are taken again.
      return new Map();
    }
  }

  async #save(known: ReadonlyMap<string, string>): Promise<void> {
    if (this.#folder === undefined) return;
    try {
      await mkdir(this.#folder, { recursive: true });
      const path = join(this.#folder, cacheFile);
      await writeFile(`${path}.part`, JSON.stringify(Object.fromEntries(known), null, 2));
      await rename(`${path}.part`, path);
    } catch {
      // A cache that can't be written costs a second digest, nothing else.
    }
  }
}

function keyOf({ path, sizeBytes, modifiedMs }: DigestedFile): string {
  return `${path}|${sizeBytes}|${modifiedMs}`;
}
