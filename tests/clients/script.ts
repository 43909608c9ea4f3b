import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The Python that has the official packages; `.ci/run` makes one. */
const python = process.env["PLENUM_TEST_PYTHON"];

/** Why the scripts can't run; undefined when they can. */
export const noPython =
  python === undefined
    ? "PLENUM_TEST_PYTHON is not set: it names a Python that has the packages openai and ollama (tests/README.md)"
    : undefined;
if (noPython !== undefined) console.error(`!!! THE PYTHON CLIENTS ARE NOT TESTED: ${noPython}`);

/** What a script says about one check. */
interface CheckResult {
  readonly name: string;
  readonly ok: boolean;
  /** What was measured, or the traceback. */
  readonly detail: string;
  readonly ms: number;
}

/** A running script, which makes the checks that it is asked for, one after the other. */
export interface RunningScript {
  /** Makes a check. Rejects when the script ends without a result. */
  check(name: string): Promise<CheckResult>;
  stop(): void;
}

/** What a script can check. */
export interface ScriptContents {
  /** Version of the package. */
  readonly version: string;
  /** Names of the checks, in their order. */
  readonly checks: readonly string[];
}

/** Asks a script what it checks: nothing without a Python. */
export function contentsOf(script: string): ScriptContents {
  if (python === undefined) return { version: "", checks: [] };
  return JSON.parse(execFileSync(python, [...commandOf(script), "--list"], { encoding: "utf8" }));
}

/** Starts a script with the service's address and models. */
export function startScript(script: string, args: readonly string[]): RunningScript {
  const child = spawn(python ?? "python3", [...commandOf(script), ...args, "-"], { stdio: "pipe" });
  const results = new Map<string, (result: CheckResult) => void>();
  let faults = "";
  child.stderr.on("data", (chunk: Buffer) => {
    faults += chunk.toString();
  });
  // A script that has ended is told by the checks that wait for it.
  child.stdin.on("error", () => {});
  createInterface({ input: child.stdout }).on("line", (line) => {
    const result: CheckResult = JSON.parse(line);
    results.get(result.name)?.(result);
  });
  const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
  return {
    stop: () => void child.kill("SIGTERM"),
    check: (name) =>
      new Promise((resolve, reject) => {
        results.set(name, resolve);
        void ended.then((code) => reject(new Error(`${script} ended with ${code} before ${name}: ${faults}`)));
        child.stdin.write(`${name}\n`);
      }),
  };
}

/** The script, run so that Python leaves no files beside it. */
function commandOf(script: string): readonly string[] {
  return ["-B", fileURLToPath(new URL(script, import.meta.url))];
}
