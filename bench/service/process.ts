import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TargetSpec } from "./targets.ts";

const startLimitMs = 60_000;

/** A server, bound to one core. */
export class Server {
  readonly spec: TargetSpec;
  readonly #core: string;
  #child: ChildProcess | undefined;

  constructor(spec: TargetSpec, core: string) {
    this.spec = spec;
    this.#core = core;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when it answers. @throws Error with the place of its log */
  async start(): Promise<void> {
    if (this.spec.start === undefined) return;
    const scratch = await mkdtemp(join(tmpdir(), "plenum-bench-"));
    const { command, cwd } = await this.spec.start(scratch);
    const logFile = join(scratch, "log");
    const log = await open(logFile, "w");
    this.#child = spawn("taskset", ["-c", this.#core, ...command], {
      stdio: ["ignore", log.fd, log.fd],
      detached: true,
      ...(cwd === undefined ? {} : { cwd }),
    });
    await log.close();
    const startedAt = performance.now();
    while (!(await answers(this.spec.url))) {
      if (this.#child.exitCode !== null) throw new Error(`${this.spec.name} ended at once; see ${logFile}`);
      if (performance.now() - startedAt > startLimitMs) throw new Error(`${this.spec.name} is silent; see ${logFile}`);
      await sleep(100);
    }
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child?.pid === undefined || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    process.kill(-child.pid, "SIGTERM");
    const force = setTimeout(() => child.pid !== undefined && process.kill(-child.pid, "SIGKILL"), 5_000);
    await gone;
    clearTimeout(force);
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(url, { signal: AbortSignal.timeout(2_000) })).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
