import { basename } from "node:path";
import { type BackendModel, CoreError } from "@plenum/core";
import { fitContext, neededBytes } from "./context-fit.ts";
import type { GpuBuild } from "./gpu/builds.ts";
import { emulatedBy, type InspectedModel } from "./inspect-model.ts";
import type { Resident } from "./memory-budget.ts";
import type { EngineConfig } from "./messages.ts";
import type { ModelName } from "./model-name.ts";
import { ModelRunner } from "./model-runner.ts";
import type { EmbeddedModelOptions, EmbeddedSettings } from "./options.ts";
import { embeddingParameters, textParameters } from "./parameters.ts";

/** The largest batch that one text to embed may take; its buffers grow with it. */
const mostEmbeddingTokens = 8_192;

export interface EmbeddedModelSetup {
  readonly inspected: InspectedModel;
  readonly name: ModelName;
  readonly settings: EmbeddedSettings;
  readonly options: EmbeddedModelOptions;
  /** Bytes that the model may take when its context is chosen. */
  readonly budgetBytes: number;
  readonly engineEntry: URL | undefined;
  /** Makes room for it; what it returns is called once the model is loaded, or failed to. @throws CoreError insufficient-memory */
  readonly reserve: (model: EmbeddedModel) => Promise<() => void>;
  /** The GPU build that models run on; undefined: the processor. */
  readonly gpu: () => Promise<GpuBuild | undefined>;
  readonly onChange: () => void;
}

/** One model file: what the catalog shows of it, and what runs it. */
export class EmbeddedModel implements Resident {
  readonly name: string;
  readonly runner: ModelRunner;
  readonly parallel: number;
  readonly contextTokens: number;
  readonly #setup: EmbeddedModelSetup;
  #digest: string | undefined;
  #endReservation: () => void = () => {};

  constructor(setup: EmbeddedModelSetup) {
    const { settings, options, inspected } = setup;
    this.#setup = setup;
    this.name = setup.name.name;
    this.parallel = inspected.facts?.use === "embedding" ? 1 : (options.parallel ?? settings.parallel);
    this.contextTokens = this.#chooseContext();
    const chatTemplate = inspected.facts?.chatTemplate;
    this.runner = new ModelRunner({
      model: this.name,
      loadTimeoutMs: settings.loadTimeoutMs,
      keepAliveMs: settings.keepAliveMs,
      logger: settings.logger,
      prepare: () => this.#prepare(),
      onStarted: () => this.#endReservation(),
      onChange: setup.onChange,
      ...(chatTemplate === undefined ? {} : { chatTemplate }),
      ...(setup.engineEntry === undefined ? {} : { engineEntry: setup.engineEntry }),
    });
  }

  get inspected(): InspectedModel {
    return this.#setup.inspected;
  }

  /** Length of its vectors; undefined for a text model. */
  get embeddingDimensions(): number | undefined {
    return this.inspected.facts?.embeddingDimensions;
  }

  get use(): "text" | "embedding" | "none" {
    const { facts, problem } = this.inspected;
    if (facts === undefined || problem !== undefined) return "none";
    return facts.use === "text" || facts.use === "embedding" ? facts.use : "none";
  }

  get residentBytes(): number | undefined {
    return this.runner.memoryBytes;
  }

  get isIdle(): boolean {
    return this.runner.isIdle;
  }

  get lastUsedMs(): number {
    return this.runner.lastUsedMs;
  }

  evict(): Promise<void> {
    return this.runner.unload();
  }

  /** Bytes that it takes when loaded, by estimate. */
  get neededBytes(): number {
    return neededBytes({
      contextTokens: this.contextTokens,
      cacheBytesPerToken: this.inspected.facts?.cacheBytesPerToken ?? 0,
      parallel: this.parallel,
      weightsBytes: this.inspected.file.sizeBytes,
    });
  }

  /** @param digest `sha256:<hex>` */
  setDigest(digest: string): void {
    this.#digest = digest;
    this.#setup.onChange();
  }

  isCalled(name: string): boolean {
    return name === this.name || this.#aliases.includes(name);
  }

  /** @throws CoreError backend-error when the file can't be used */
  requireUsable(): void {
    const { problem } = this.inspected;
    if (problem !== undefined) throw new CoreError("backend-error", problem, { model: this.name });
  }

  toBackendModel(): BackendModel {
    const { inspected, name } = this.#setup;
    const { runner } = this;
    const stateDetail = inspected.problem ?? runner.stateDetail;
    const { memoryBytes, expiresAtMs } = runner;
    const isText = this.use === "text";
    return {
      name: this.name,
      title: name.title,
      aliases: this.#aliases,
      state: inspected.problem === undefined ? runner.state : "unavailable",
      ...(stateDetail === undefined ? {} : { stateDetail }),
      capabilities: this.#capabilities(),
      emulated: emulatedBy(inspected),
      limits: this.#limits(),
      details: { ...inspected.details, ...(this.#digest === undefined ? {} : { digest: this.#digest }) },
      parameters: isText
        ? textParameters({ ...inspected.format, insert: inspected.hasInfillTokens })
        : this.use === "embedding"
          ? embeddingParameters
          : {},
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
      ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
      createdAtMs: Math.round(inspected.file.modifiedMs),
    };
  }

  get #aliases(): readonly string[] {
    return [...new Set([...(this.#setup.options.aliases ?? []), ...this.#setup.name.aliases])];
  }

  #capabilities(): BackendModel["capabilities"] {
    const { format, hasInfillTokens } = this.inspected;
    const isText = this.use === "text";
    return {
      chat: isText,
      completion: isText,
      embeddings: this.use === "embedding",
      tools: isText && format.tools,
      structuredOutput: isText,
      reasoning: isText && format.reasoning,
      vision: false,
      logprobs: isText,
      insert: isText && hasInfillTokens,
    };
  }

  #limits(): BackendModel["limits"] {
    const { embeddingDimensions, parallel, contextTokens } = this;
    return {
      parallel,
      ...(this.use === "none" ? {} : { contextTokens }),
      ...(embeddingDimensions === undefined ? {} : { embeddingDimensions }),
    };
  }

  #chooseContext(): number {
    const { inspected, options, settings, budgetBytes } = this.#setup;
    const { facts } = inspected;
    const wanted = options.contextTokens ?? settings.contextTokens;
    const chosen = fitContext({
      trainedContextTokens: facts?.trainedContextTokens,
      wantedContextTokens: wanted,
      cacheBytesPerToken: facts?.cacheBytesPerToken ?? 0,
      parallel: this.parallel,
      weightsBytes: inspected.file.sizeBytes,
      budgetBytes,
    });
    return facts?.use === "embedding" ? Math.min(chosen, mostEmbeddingTokens) : chosen;
  }

  async #prepare(): Promise<EngineConfig> {
    const gpu = await this.#setup.gpu();
    this.#endReservation = await this.#setup.reserve(this);
    const { inspected, settings } = this.#setup;
    return {
      modelPath: inspected.file.path,
      use: this.use === "embedding" ? "embedding" : "text",
      contextTokens: this.contextTokens,
      parallel: this.parallel,
      ...(settings.threads === undefined ? {} : { threads: settings.threads }),
      vocabularySize: inspected.facts?.vocabularySize ?? 0,
      ...(gpu === undefined ? {} : { gpu }),
    };
  }
}

/** Settings of a file: by its name, or by the name made from it. */
export function modelOptions(settings: EmbeddedSettings, path: string, name: string): EmbeddedModelOptions {
  return settings.models[basename(path)] ?? settings.models[name] ?? {};
}
