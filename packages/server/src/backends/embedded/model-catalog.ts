import { basename } from "node:path";
import { Digests } from "./digests.ts";
import { EmbeddedModel, modelOptions } from "./embedded-model.ts";
import type { GpuBuild } from "./gpu/builds.ts";
import { chooseBuild } from "./gpu/choose-build.ts";
import { inspectModel } from "./inspect-model.ts";
import { libraryProblem } from "./library-version.ts";
import { availableBytes } from "./memory.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { findModelFiles, type ModelFile } from "./model-files.ts";
import { type ModelName, nameModel } from "./model-name.ts";
import type { EmbeddedSettings } from "./options.ts";

/** Part of the free memory that a model's context may be chosen for. */
export const contextShare = 0.5;

/** The models of all files, as they were found at the last scan. */
export class ModelCatalog {
  readonly #settings: EmbeddedSettings;
  readonly #digests: Digests;
  readonly #engineEntry: URL | undefined;
  readonly #listeners = new Set<() => void>();
  #models: readonly EmbeddedModel[] = [];
  readonly #budget: MemoryBudget;
  readonly #gpu: Promise<GpuBuild | undefined>;
  /** Put before what a file says of itself: with a wrong library none can be used. */
  readonly #libraryProblem: { readonly problem?: string };
  readonly #closing = new AbortController();
  #scanning: Promise<void> | undefined;

  constructor(settings: EmbeddedSettings, engineEntry: URL | undefined) {
    this.#settings = settings;
    this.#digests = new Digests(settings.cacheFolder);
    this.#engineEntry = engineEntry;
    const { gpu: setting, home, logger, libraryVersion } = settings;
    const problem = libraryProblem(libraryVersion);
    this.#libraryProblem = problem === undefined ? {} : { problem };
    if (problem !== undefined) logger.warn({ problem }, "the embedded engine can't be used");
    this.#budget = new MemoryBudget({
      limitBytes: settings.memoryLimitBytes,
      freeBytes: availableBytes,
      residents: () => this.#models,
      onEvict: (model, other) => logger.info({ model, for: other }, "model unloaded to make room"),
    });
    this.#gpu = chooseBuild({ setting, home, logger, signal: this.#closing.signal });
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  get models(): readonly EmbeddedModel[] {
    return this.#models;
  }

  find(name: string): EmbeddedModel | undefined {
    return this.#models.find((model) => model.name === name) ?? this.#models.find((model) => model.isCalled(name));
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Looks at the files again: new ones come, missing ones go, changed ones are read again. */
  async scan(): Promise<void> {
    while (this.#scanning !== undefined) await this.#scanning;
    this.#scanning = this.#scan().finally(() => {
      this.#scanning = undefined;
    });
    await this.#scanning;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#digests.close();
    await Promise.all(this.#models.map((model) => model.runner.close()));
  }

  async #scan(): Promise<void> {
    const { paths, furtherPaths } = this.#settings;
    const files = await findModelFiles([...paths, ...furtherPaths()]);
    const names = new Set<string>();
    const models: EmbeddedModel[] = [];
    const stale = new Set(this.#models);
    for (const file of files) {
      const kept = this.#models.find((model) => isSame(model.inspected.file, file));
      const model = kept ?? (await this.#open(file, names));
      if (model === undefined) continue;
      names.add(model.name);
      stale.delete(model);
      models.push(model);
    }
    if (this.#isClosed) return;
    this.#models = models;
    for (const model of stale) void model.runner.unload();
    this.#changed();
    this.#addDigests(models).catch((error: unknown) => {
      this.#settings.logger.warn({ cause: String(error) }, "digests could not be taken");
    });
  }

  async #open(file: ModelFile, taken: ReadonlySet<string>): Promise<EmbeddedModel | undefined> {
    const inspected = await inspectModel(file);
    if (inspected.facts?.use === "other") return undefined;
    const { problem } = inspected;
    if (problem !== undefined) this.#settings.logger.warn({ file: file.path, problem }, "model file can't be used");
    const made = nameModel(basename(file.path));
    const options = modelOptions(this.#settings, file.path, made.name);
    const name = freeName(options.name === undefined ? made : { ...made, name: options.name }, taken);
    return new EmbeddedModel({
      inspected: { ...inspected, ...this.#libraryProblem },
      name,
      settings: this.#settings,
      options,
      budgetBytes: Math.min(availableBytes(), this.#settings.memoryLimitBytes) * contextShare,
      engineEntry: this.#engineEntry,
      reserve: (model) => this.#budget.reserve(model, model.neededBytes),
      gpu: () => this.#gpu,
      onChange: () => this.#changed(),
    });
  }

  async #addDigests(models: readonly EmbeddedModel[]): Promise<void> {
    for (const model of models) {
      if (this.#isClosed) return;
      if (model.use === "none") continue;
      const digest = await this.#digests.of(model.inspected.file);
      if (digest !== undefined && digest !== model.toBackendModel().details.digest) model.setDigest(digest);
    }
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

function isSame(a: ModelFile, b: ModelFile): boolean {
  return a.path === b.path && a.sizeBytes === b.sizeBytes && a.modifiedMs === b.modifiedMs;
}

/** A second file of the same name is told apart by its format, a third by a number. */
function freeName(made: ModelName, taken: ReadonlySet<string>): ModelName {
  if (!taken.has(made.name)) return made;
  let name = made.longName;
  for (let number = 2; taken.has(name); number++) name = `${made.longName}-${number}`;
  return { ...made, name, aliases: [] };
}
