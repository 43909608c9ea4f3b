import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What a program of this folder can be asked, by name. */
type Asks = Readonly<Record<string, (argument: never) => unknown>>;

/** In the program: answers what it is asked, one thing after another. */
export function answerAsks(asks: Asks): void {
  process.on("message", ({ name, argument }: { readonly name: string; readonly argument: never }) => {
    void (async () => asks[name]?.(argument))().then(
      (answer) => process.send?.({ answer }),
      (error: unknown) => process.send?.({ error: String(error) }),
    );
  });
  process.on("disconnect", () => process.exit(0));
  process.send?.({ answer: "ready" });
}

/** A program of this folder in a process of its own. */
export class Program {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** @param core the processor that it is bound to; undefined: any */
  static async start(name: string, core?: string): Promise<Program> {
    const node = [process.execPath, "--conditions=@plenum/source", "--import", "tsx"];
    const bound = core === undefined ? node : ["taskset", "-c", core, ...node];
    const [command = "", ...args] = [...bound, fileURLToPath(new URL(name, import.meta.url))];
    const program = new Program(spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
    await program.#answer();
    return program;
  }

  /** One question at a time. */
  async ask<T>(name: string, argument?: unknown): Promise<T> {
    const answer = this.#answer<T>();
    this.#child.send({ name, argument });
    return answer;
  }

  #answer<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error("A program of the bench has ended"));
      this.#child.once("exit", ended);
      this.#child.once("message", (message: { readonly answer: T; readonly error?: string }) => {
        this.#child.off("exit", ended);
        if (message.error === undefined) resolve(message.answer);
        else reject(new Error(message.error));
      });
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.disconnect();
    await exited;
  }
}

/** Bytes. */
export interface Memory {
  /** Living objects and the buffers outside the heap, after a collection. */
  readonly living: number;
  /** Of the process; -1 where it is not known. */
  readonly resident: number;
}

let collectGarbage: (() => void) | undefined;

export async function memoryNow(): Promise<Memory> {
  if (collectGarbage === undefined) {
    setFlagsFromString("--expose-gc");
    collectGarbage = runInNewContext("gc") as () => void;
  }
  for (let times = 0; times < 3; times += 1) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { living: heapUsed + external, resident: rss };
}
