import type { ChildProcess, Serializable } from "node:child_process";
import type { CoreError } from "@plenum/core";
import { engineLost, loadError } from "./errors.ts";
import { forkEngine } from "./fork-engine.ts";
import type { EngineConfig, EngineEvent, EngineMessage, EngineReady, ServiceMessage } from "./messages.ts";
import { sourceOrBuilt } from "./source-or-built.ts";

/** Time that a child gets to leave by itself before it is killed. */
const leaveMs = 3_000;
/** Kept of what a child prints, for the log. */
const mostLogCharacters = 8_192;

/** What a request hears from its child. */
export interface EngineListener {
  onEvent(event: EngineEvent): void;
  /** The child has ended; nothing follows. */
  onLost(error: CoreError): void;
}

export interface EngineProcessOptions {
  readonly model: string;
  readonly config: EngineConfig;
  /** Program of the child. @default this room's engine */
  readonly entry?: URL;
}

/** One engine child, from fork to exit. */
export class EngineProcess {
  /** Resolves when the model is loaded. @throws CoreError backend-error, insufficient-memory */
  readonly ready: Promise<EngineReady>;
  /** Resolves when the child is gone, with how it went. */
  readonly exited: Promise<string>;
  rssBytes: number | undefined;
  readonly #options: EngineProcessOptions;
  readonly #child: ChildProcess;
  readonly #listeners = new Map<number, EngineListener>();
  #settleReady: { resolve: (ready: EngineReady) => void; reject: (error: CoreError) => void } | undefined;
  #nextId = 1;
  #isReady = false;
  #log = "";
  #lost: CoreError | undefined;

  constructor(options: EngineProcessOptions) {
    this.#options = options;
    this.ready = new Promise((resolve, reject) => {
      this.#settleReady = { resolve, reject };
    });
    this.ready.catch(() => undefined);
    const { gpu, contextTokens, parallel } = options.config;
    this.#child = forkEngine(
      options.entry ?? sourceOrBuilt("./engine/main", import.meta.url),
      gpu && { build: gpu, contextTokens: contextTokens * parallel },
    );
    this.exited = new Promise((resolve) => {
      const leave = (how: string) => {
        this.#leave(how);
        resolve(how);
      };
      this.#child.once("exit", (code, signal) => leave(signal ?? `exit code ${code}`));
      this.#child.on("error", (error) => leave(error.message));
    });
    this.#child.on("message", (message: EngineMessage) => this.#take(message));
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#log = (this.#log + this.#loggable(text)).slice(-mostLogCharacters);
      });
    }
    this.send({ type: "start", config: options.config });
  }

  /** The child's process id, for the log. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isGone(): boolean {
    return this.#lost !== undefined;
  }

  /** Last lines that the child printed. */
  get log(): string {
    return this.#log.trim();
  }

  /** Begins to listen to a new request. @returns its id */
  open(listener: EngineListener): number {
    const id = this.#nextId++;
    const lost = this.#lost;
    if (lost === undefined) this.#listeners.set(id, listener);
    else queueMicrotask(() => listener.onLost(lost));
    return id;
  }

  close(id: number): void {
    this.#listeners.delete(id);
  }

  send(message: ServiceMessage): void {
    if (this.#child.connected) this.#child.send(message satisfies ServiceMessage as Serializable, () => undefined);
  }

  /** Ends the child; by force when it does not leave by itself. */
  async stop(): Promise<void> {
    if (this.isGone) return;
    this.send({ type: "exit" });
    const timer = setTimeout(() => this.kill(), leaveMs);
    await this.exited;
    clearTimeout(timer);
  }

  /** Ends the child at once. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #take(message: EngineMessage): void {
    switch (message.type) {
      case "ready":
        this.rssBytes = message.rssBytes;
        this.#isReady = true;
        this.#settleReady?.resolve(message);
        return;
      case "load-failed":
        this.#settleReady?.reject(loadError(message.failure, this.#options.model, this.#options.config.modelPath));
        return;
      case "memory":
        this.rssBytes = message.rssBytes;
        return;
      case "events":
        for (const event of message.events) this.#listeners.get(event.id)?.onEvent(event);
    }
  }

  /** Once requests come, the engine may print what is in them; only lines of its own rooms are kept then. */
  #loggable(text: string): string {
    if (!this.#isReady) return text;
    const lines = text.split("\n").filter((line) => /^(ggml|GGML|llama_|CUDA|terminate called)/.test(line));
    return lines.map((line) => `${line}\n`).join("");
  }

  #leave(how: string): void {
    if (this.#lost !== undefined) return;
    const error = engineLost(this.#options.model, how, this.log);
    this.#lost = error;
    this.#settleReady?.reject(error);
    for (const listener of this.#listeners.values()) listener.onLost(error);
    this.#listeners.clear();
  }
}
