import { setTimeout as wait } from "node:timers/promises";
import { CoreError, type ModelState, toCoreError } from "@plenum/core";
import { backoffMs } from "../shared/backoff.ts";
import { abortable } from "./abortable.ts";
import { type ChatFormat, createChatFormat } from "./chat-format/index.ts";
import { EngineProcess } from "./engine-process.ts";
import type { EngineConfig, EngineReady } from "./messages.ts";
import type { EmbeddedLogger } from "./options.ts";

/** After so many failures in a row the model is started again only when it is asked for. */
const mostRestarts = 5;
/** Node's timers hold no longer time: 24 days. */
const longestTimerMs = 2 ** 31 - 1;

/** A model that can answer now. */
export interface RunningModel {
  readonly engine: EngineProcess;
  readonly ready: EngineReady;
  readonly format: ChatFormat;
}

export interface ModelRunnerOptions {
  readonly model: string;
  readonly chatTemplate?: string;
  /** Milliseconds from fork to ready. */
  readonly loadTimeoutMs: number;
  /** Milliseconds; -1: for ever. */
  readonly keepAliveMs: number;
  readonly logger: EmbeddedLogger;
  /** Program of the child, for tests. */
  readonly engineEntry?: URL;
  /** Makes room for the model and says how it is to be loaded. @throws CoreError insufficient-memory */
  readonly prepare: () => Promise<EngineConfig>;
  /** After each start, whether it came to a loaded model or not. */
  readonly onStarted?: () => void;
  /** After each change of what the catalog shows. */
  readonly onChange: () => void;
}

/** Keeps the engine child of one model: starts it when asked, again after a crash, and ends it when idle. */
export class ModelRunner {
  readonly #options: ModelRunnerOptions;
  #engine: EngineProcess | undefined;
  #running: Promise<RunningModel> | undefined;
  #isLoaded = false;
  #stopping: Promise<void> | undefined;
  #isUnloadWanted = false;
  readonly #closing = new AbortController();
  #active = 0;
  #onIdle: (() => void)[] = [];
  #failures = 0;
  #retryAtMs = 0;
  #restartTimer: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #expiresAtMs: number | undefined;
  #lastUsedMs = 0;
  #badFile: CoreError | undefined;

  constructor(options: ModelRunnerOptions) {
    this.#options = options;
  }

  get state(): ModelState {
    if (this.#badFile !== undefined) return "unavailable";
    if (this.#isLoaded) return "loaded";
    return this.#running === undefined ? "available" : "loading";
  }

  /** Why it is unavailable. */
  get stateDetail(): string | undefined {
    return this.#badFile?.message;
  }

  get memoryBytes(): number | undefined {
    return this.#isLoaded ? this.#engine?.rssBytes : undefined;
  }

  get expiresAtMs(): number | undefined {
    return this.#expiresAtMs;
  }

  /** True: a request runs on it, or waits for it to load. */
  get isInUse(): boolean {
    return this.#active > 0;
  }

  /** True: loaded, and nobody uses it. */
  get isIdle(): boolean {
    return this.#isLoaded && this.#active === 0;
  }

  get lastUsedMs(): number {
    return this.#lastUsedMs;
  }

  /** Process id of the child, while there is one. */
  get pid(): number | undefined {
    return this.#engine?.pid;
  }

  /**
   * Loads the model when needed and holds it until `release`.
   * @throws CoreError backend-error, insufficient-memory, model-loading; the signal's reason
   */
  async acquire(signal: AbortSignal): Promise<RunningModel> {
    while (this.#stopping !== undefined) await abortable(this.#stopping, signal);
    signal.throwIfAborted();
    // Who wants it loaded now outweighs who wanted it unloaded after a running answer.
    this.#isUnloadWanted = false;
    this.#active += 1;
    this.#stopIdleTimer();
    try {
      return await abortable(this.#run(), signal);
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** @param keepAliveMs of the request; absent: the model's default */
  release(keepAliveMs = this.#options.keepAliveMs): void {
    this.#active -= 1;
    this.#lastUsedMs = Date.now();
    if (this.#active > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
    if (!this.#isUnloadWanted) this.#startIdleTimer(keepAliveMs);
  }

  /** To be called when an answer came through: earlier crashes are forgiven. */
  noteSuccess(): void {
    this.#failures = 0;
  }

  /** Ends the child when its running requests have ended, unless another one has come meanwhile. */
  async unload(): Promise<void> {
    clearTimeout(this.#restartTimer);
    if (this.#running === undefined && this.#stopping === undefined) return;
    this.#isUnloadWanted = true;
    if (this.#active > 0) {
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
      if (!this.#isUnloadWanted) return;
    }
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined;
    });
    await this.#stopping;
  }

  /** Ends everything at once; running requests fail. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#restartTimer);
    this.#stopIdleTimer();
    await this.#engine?.stop();
    await this.#running?.catch(() => undefined);
  }

  /** Lets a model whose file could not be read be tried once more. */
  forgive(): void {
    this.#badFile = undefined;
    this.#retryAtMs = 0;
  }

  get #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  async #run(): Promise<RunningModel> {
    if (this.#isClosing) throw closingError();
    if (this.#badFile !== undefined) throw this.#badFile;
    this.#running ??= this.#start();
    return await this.#running;
  }

  async #start(): Promise<RunningModel> {
    clearTimeout(this.#restartTimer);
    this.#options.onChange();
    try {
      await this.#waitForRetry();
      const config = await this.#options.prepare();
      if (this.#isClosing) throw closingError();
      const running = await this.#loadWhereItFits(config);
      this.#isLoaded = true;
      if (this.#active === 0) this.#startIdleTimer(this.#options.keepAliveMs);
      return running;
    } catch (error) {
      this.#noteLoadFailure(toCoreError(error));
      throw error;
    } finally {
      this.#options.onStarted?.();
      this.#options.onChange();
    }
  }

  async #waitForRetry(): Promise<void> {
    const waitMs = this.#retryAtMs - Date.now();
    if (waitMs <= 0) return;
    await wait(waitMs, undefined, { signal: this.#closing.signal }).catch(() => {
      throw closingError();
    });
  }

  /** A GPU may fail, or be full, where its build loads: the processor then does. */
  async #loadWhereItFits(config: EngineConfig): Promise<RunningModel> {
    try {
      return await this.#load(config);
    } catch (error) {
      const { gpu, ...onProcessor } = config;
      if (gpu === undefined || this.#isClosing) throw error;
      const { model, logger } = this.#options;
      const detail = toCoreError(error).message;
      logger.warn({ model, build: gpu.kind, detail }, "model does not load on the GPU; it is loaded on the processor");
      return this.#load(onProcessor);
    }
  }

  async #load(config: EngineConfig): Promise<RunningModel> {
    const { model, chatTemplate, engineEntry, loadTimeoutMs, logger } = this.#options;
    const startedAt = Date.now();
    const engine = new EngineProcess({ model, config, ...(engineEntry === undefined ? {} : { entry: engineEntry }) });
    this.#engine = engine;
    void engine.exited.then((how) => this.#onExit(engine, how));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(lateError(model, loadTimeoutMs)), loadTimeoutMs);
    });
    try {
      const ready = await Promise.race([engine.ready, late]);
      const format = createChatFormat({
        ...(chatTemplate === undefined ? {} : { template: chatTemplate }),
        ...(ready.bosToken === undefined ? {} : { bosToken: ready.bosToken }),
        ...(ready.eosToken === undefined ? {} : { eosToken: ready.eosToken }),
        specialTokens: ready.controlTokens,
      });
      logger.info({ model, pid: engine.pid, loadMs: Date.now() - startedAt, rssBytes: ready.rssBytes }, "model loaded");
      return { engine, ready, format };
    } catch (error) {
      engine.kill();
      await engine.exited;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #noteLoadFailure(error: CoreError): void {
    this.#running = undefined;
    this.#engine = undefined;
    this.#failures += 1;
    this.#retryAtMs = Date.now() + backoffMs(this.#failures, Math.random());
    if (this.#isClosing) return;
    if (error.code === "backend-error") this.#badFile = error;
    this.#options.logger.warn(
      { model: this.#options.model, code: error.code, detail: error.message },
      "model not loaded",
    );
  }

  #onExit(engine: EngineProcess, how: string): void {
    if (this.#engine !== engine || !this.#isLoaded) return;
    this.#engine = undefined;
    this.#running = undefined;
    this.#isLoaded = false;
    this.#stopIdleTimer();
    if (!this.#isClosing && !this.#isUnloadWanted) this.#restart(engine, how);
    this.#options.onChange();
  }

  #restart(engine: EngineProcess, how: string): void {
    this.#failures += 1;
    const waitMs = backoffMs(this.#failures, Math.random());
    this.#retryAtMs = Date.now() + waitMs;
    const { model, logger } = this.#options;
    logger.warn({ model, how, failures: this.#failures, waitMs, log: engine.log }, "engine process ended");
    if (this.#failures > mostRestarts) return;
    this.#restartTimer = setTimeout(() => {
      // A failure is logged where it happens.
      this.#run().catch(() => undefined);
    }, waitMs).unref();
  }

  async #stop(): Promise<void> {
    try {
      await this.#running?.catch(() => undefined);
      this.#stopIdleTimer();
      await this.#engine?.stop();
    } finally {
      this.#isUnloadWanted = false;
      this.#running = undefined;
      this.#isLoaded = false;
      this.#options.onChange();
    }
  }

  #startIdleTimer(keepAliveMs: number): void {
    this.#stopIdleTimer();
    if (keepAliveMs < 0 || !this.#isLoaded || this.#isClosing) return;
    this.#expiresAtMs = Date.now() + keepAliveMs;
    this.#idleTimer = setTimeout(() => void this.unload(), Math.min(keepAliveMs, longestTimerMs)).unref();
    this.#options.onChange();
  }

  #stopIdleTimer(): void {
    clearTimeout(this.#idleTimer);
    if (this.#expiresAtMs === undefined) return;
    this.#expiresAtMs = undefined;
    this.#options.onChange();
  }
}

function closingError(): CoreError {
  return new CoreError("draining", "The service is stopping; ask again when it is back.");
}

function lateError(model: string, loadTimeoutMs: number): CoreError {
  return new CoreError(
    "model-loading",
    `${model} was not ready within ${Math.round(loadTimeoutMs / 1000)} s; ask again later, or raise loadTimeoutMs.`,
    { model, retryAfterMs: 5_000 },
  );
}
