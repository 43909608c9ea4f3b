import { type ChildProcess, fork } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Json } from "../service.ts";

/** A program of this folder in a process of its own, run from the sources. */
export interface Forked {
  readonly url: string;
  /** What it has written so far. */
  output(): string;
  /** Sends a message and gives the next answer that has this member. */
  ask(member: string, message?: string): Promise<Json>;
  /** The next message with this member; ask before what makes it come. */
  next(member: string): Promise<Json>;
  stop(): Promise<void>;
  /** Ends it at once, without a word: `kill -9`. */
  kill(): Promise<void>;
}

/** Starts `name.ts` and waits until it listens. */
export async function forkProgram(
  name: "durable" | "service" | "upstream",
  args: readonly string[] = [],
): Promise<Forked> {
  const child: ChildProcess = fork(fileURLToPath(new URL(`./${name}.ts`, import.meta.url)), [...args], {
    execArgv: ["--conditions=@plenum/source", "--import", "tsx"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  }
  const messages = new EventEmitter();
  const exited = once(child, "exit");
  void exited.then(() => messages.emit("error", new Error(`${name} ended: ${text}`)));
  messages.on("error", () => undefined);
  child.on("message", (message: Json) => {
    for (const [member, value] of Object.entries(message)) messages.emit(member === "error" ? "failed" : member, value);
  });
  const next = async (member: string): Promise<Json> => (await once(messages, member))[0];
  return {
    url: await next("url"),
    output: () => text,
    next,
    ask(member, message = member) {
      const answer = next(member);
      const failed = next("failed").then((reason) => Promise.reject(new Error(reason)));
      child.send(message);
      return Promise.race([answer, failed]);
    },
    async stop() {
      if (child.exitCode !== null) return;
      child.disconnect();
      await exited;
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
  };
}
