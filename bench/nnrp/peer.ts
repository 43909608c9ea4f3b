import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The Python that has nnrp-py; see tests/clients/nnrp-peer/README.md. */
export const peerPython = process.env["PLENUM_TEST_NNRP_PYTHON"];

/** One half of the peer pair; it says a JSON object a line. */
export class Peer {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: Interface;

  /** @param words of `peer.py` */
  constructor(...words: readonly string[]) {
    const program = fileURLToPath(new URL("peer.py", import.meta.url));
    this.#child = spawn(peerPython ?? "", ["-B", program, ...words], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout });
  }

  /** The next line. */
  next<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error("The peer has ended"));
      this.#child.once("exit", ended);
      this.#lines.once("line", (line) => {
        this.#child.off("exit", ended);
        resolve(JSON.parse(line));
      });
    });
  }

  ask<T>(): Promise<T> {
    const answer = this.next<T>();
    this.#child.stdin.write("\n");
    return answer;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await exited;
  }
}
