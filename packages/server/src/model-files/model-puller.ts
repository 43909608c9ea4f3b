import { open, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { type Backend, CoreError, type TaskProgress } from "@plenum/core";
import { type FetchOptions, fetchModel, type WantedFile } from "./fetch-model.ts";
import { insideOf, isInside, safeGgufName, safeName } from "./file-name.ts";
import { findGgufFiles } from "./find-gguf-files.ts";
import { findHubFiles, type HubOptions } from "./hub.ts";
import type { ModelLibrary } from "./model-library.ts";
import { keyOfSource, type PullSource } from "./pull-source.ts";
import { SharedPulls } from "./shared-pulls.ts";
import { partNames } from "./split-files.ts";
import { ensureStarterModel, starterModel, starterNames } from "./starter-model.ts";

export interface ModelPullerOptions {
  readonly library: ModelLibrary;
  readonly hub: HubOptions;
  /** Runtimes as they are now, in order. */
  readonly runtimes: () => readonly Backend[];
  /** Whether the catalog has a model of this name. */
  readonly hasModel: (name: string) => boolean;
  /** What serves files of this machine. Absent: nothing does. */
  readonly server?: FileServer;
  /** For tests. */
  readonly timeouts?: FetchOptions["timeouts"];
}

/** The engine that serves files. */
export interface FileServer {
  /** Looks at the files again. */
  rescan(): Promise<void>;
  /** Catalog ids of the models whose first files these are. */
  modelsOf(paths: readonly string[]): readonly string[];
}

/** A JSON value: the result of a `model.pull` task. */
export interface PullResult {
  /** Catalog ids; empty: what was pulled can't be served, and the catalog or the log says why. */
  readonly models: readonly string[];
  /** Absent: the runtime keeps them. */
  readonly size_bytes?: number;
  /** Of each file, in order. */
  readonly sha256?: readonly string[];
}

export interface PullOptions {
  readonly onProgress: (progress: TaskProgress) => void;
  readonly signal: AbortSignal;
}

/** Brings models here from wherever a source says. Two pulls of one source at a time are one. */
export class ModelPuller {
  readonly #options: ModelPullerOptions;
  readonly #pulls = new SharedPulls<PullResult>();

  constructor(options: ModelPullerOptions) {
    this.#options = options;
  }

  /** @throws CoreError for every failure; the signal's reason. */
  pull(source: PullSource, options: PullOptions): Promise<PullResult> {
    return this.#pulls.join(keyOfSource(source), options, (onProgress, signal) =>
      this.#pull(source, { onProgress, signal }),
    );
  }

  async #pull(source: PullSource, options: PullOptions): Promise<PullResult> {
    switch (source.kind) {
      case "hub":
        return this.#fromHub(source, options);
      case "url":
        return this.#fetch(keyOfSource(source), this.#filesOfUrl(source), options);
      case "local":
        return this.#register(source.path);
      case "starter":
        return this.#starter(options);
      case "ollama":
        return this.#fromRuntime(source.name, this.#runtime() ?? noRuntime(), options);
      case "name":
        return this.#byName(source.name, options);
    }
  }

  /** A runtime that can pull comes first: it keeps the model in its own way, and knows whether there is a newer one. */
  async #byName(name: string, options: PullOptions): Promise<PullResult> {
    const runtime = this.#runtime();
    if (runtime !== undefined) return this.#fromRuntime(name, runtime, options);
    if (this.#options.hasModel(name)) return { models: [name] };
    if (starterNames.includes(name.replace(/:latest$/, ""))) return this.#starter(options);
    const detail = `There is no Ollama runtime here that pulls '${name}'; pull hf:owner/repository or an https URL instead.`;
    throw new CoreError("not-found", detail, { param: "source" });
  }

  async #fromHub(source: Extract<PullSource, { kind: "hub" }>, options: PullOptions): Promise<PullResult> {
    this.#requireServer();
    options.onProgress({ done: 0, unit: "bytes", step: "finding files" });
    const files = await findHubFiles(source, this.#options.hub, options.signal);
    const folder = safeName(`${source.owner}--${source.repository}`);
    const wanted = files.map(({ path, ...file }) => ({ ...file, path: this.#place(folder, safeGgufName(path)) }));
    // The same repository can hold several models, so a source is remembered by what it chose.
    const key = `hf:${source.owner}/${source.repository}:${files[0]?.path}`;
    return this.#fetch(key, wanted, options);
  }

  #filesOfUrl({ url, sha256 }: Extract<PullSource, { kind: "url" }>): readonly WantedFile[] {
    const last = new URL(url).pathname.split("/").at(-1) ?? "";
    const names = partNames(last);
    if (names[0] !== last) {
      throw new CoreError("invalid-request", "Name the first file of a split model; the others are found.", {
        param: "source",
      });
    }
    if (sha256.length > 0 && sha256.length !== names.length) {
      const detail = `The model has ${names.length} files, so give ${names.length} hashes, separated by commas.`;
      throw new CoreError("invalid-request", detail, { param: "sha256" });
    }
    return names.map((name, index) => {
      const address = new URL(url);
      address.pathname = `${address.pathname.slice(0, -last.length)}${name}`;
      const hash = sha256[index];
      return {
        url: names.length === 1 ? url : address.href,
        ...(hash !== undefined && { sha256: hash }),
        path: this.#place(safeGgufName(decoded(name))),
      };
    });
  }

  #place(...names: readonly string[]): string {
    return insideOf(this.#options.library.folder, ...names);
  }

  async #fetch(key: string, files: readonly WantedFile[], options: PullOptions): Promise<PullResult> {
    const server = this.#requireServer();
    const [first, ...rest] = files;
    if (first === undefined) throw new RangeError("a model has a file");
    const { timeouts } = this.#options;
    const fetched = await fetchModel(key, [first, ...rest], {
      ...options,
      ...(timeouts !== undefined && { timeouts }),
    });
    await server.rescan();
    return { models: server.modelsOf([fetched.path]), size_bytes: fetched.sizeBytes, sha256: fetched.sha256 };
  }

  async #register(named: string): Promise<PullResult> {
    const server = this.#requireServer();
    const path = await realpath(named).catch(() => undefined);
    const status = path === undefined ? undefined : await stat(path).catch(() => undefined);
    if (path === undefined || status === undefined)
      throw badPath("There is nothing at this path that the service may read.");
    if (!status.isFile() && !status.isDirectory()) throw badPath("This is neither a file nor a folder.");
    const first = status.isFile() ? join(path, "..", partNames(basename(path))[0] ?? "") : path;
    const files = await findGgufFiles(first);
    if (files.length === 0) throw badPath("There is no .gguf file at this path.");
    if (status.isFile()) await requireGguf(first);
    const { library } = this.#options;
    const folder = await realpath(library.folder).catch(() => library.folder);
    if (first !== folder && !isInside(folder, first)) await library.register(first);
    await server.rescan();
    return { models: server.modelsOf(files) };
  }

  async #starter({ onProgress, signal }: PullOptions): Promise<PullResult> {
    const server = this.#requireServer();
    const { folder } = this.#options.library;
    const { path } = await ensureStarterModel({
      folder,
      signal,
      onProgress: ({ doneBytes, totalBytes }) =>
        onProgress({ done: doneBytes, total: totalBytes, unit: "bytes", step: `pulling ${starterModel.name}` }),
    });
    await server.rescan();
    return { models: server.modelsOf([path]), size_bytes: starterModel.sizeBytes, sha256: [starterModel.sha256] };
  }

  async #fromRuntime(name: string, runtime: Pulling, { onProgress, signal }: PullOptions): Promise<PullResult> {
    await runtime.pull(name, onProgress, signal);
    return { models: [name] };
  }

  /** A reachable one before one that is down. */
  #runtime(): Pulling | undefined {
    const able = this.#options
      .runtimes()
      .filter((runtime): runtime is Pulling => runtime.kind === "ollama" && runtime.pull !== undefined);
    return able.find((runtime) => runtime.health?.().state !== "unavailable") ?? able[0];
  }

  #requireServer(): FileServer {
    const { server } = this.#options;
    if (server !== undefined) return server;
    const detail = "The embedded engine is switched off (embedded.enabled), so nothing here would serve the file.";
    throw new CoreError("unsupported-operation", detail, { param: "source" });
  }
}

type Pulling = Backend & Required<Pick<Backend, "pull">>;

function noRuntime(): never {
  const detail =
    "There is no Ollama runtime here: start `ollama serve`, or name one in `runtimes` of the configuration.";
  throw new CoreError("backend-unavailable", detail, { param: "source" });
}

function badPath(detail: string): CoreError {
  return new CoreError("invalid-request", detail, { param: "source" });
}

async function requireGguf(path: string): Promise<void> {
  const file = await open(path, "r").catch(() => undefined);
  if (file === undefined) throw badPath("The service may not read this file.");
  try {
    const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    if (buffer.toString("latin1") !== "GGUF") throw badPath("This is no GGUF file.");
  } finally {
    await file.close();
  }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
