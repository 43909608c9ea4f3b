import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addBench } from "./commands/bench.ts";
import { addBridge } from "./commands/bridge.ts";
import { addChat } from "./commands/chat.ts";
import { addCompletion } from "./commands/completion.ts";
import { addConformance } from "./commands/conformance.ts";
import { addDiscover } from "./commands/discover.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addEngine } from "./commands/engine.ts";
import { addModelState } from "./commands/model-state.ts";
import { addModels } from "./commands/models.ts";
import { addPs } from "./commands/ps.ts";
import { addResponses } from "./commands/responses.ts";
import { addRun } from "./commands/run.ts";
import { addServe } from "./commands/serve.ts";
import { addStore } from "./commands/store.ts";
import { addTasks } from "./commands/tasks.ts";
import { addTokens } from "./commands/tokens.ts";
import { addWatch } from "./commands/watch.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { reportError } from "./report-error.ts";
import type { Surroundings } from "./surroundings.ts";

const helpEnd = `
Start here:
  plenum serve                                     start the service on http://127.0.0.1:7411
  plenum models                                    what it can run
  plenum run smollm2:135m "Why is the sky blue?"   ask
  plenum doctor                                    what is here, what is missing, what to do
  plenum COMMAND --help                            flags and examples

Exit codes:
  0    done
  1    the service refused or the work failed; the message says what to do (doctor: something must be done)
  2    wrong flags or a wrong configuration
  3    no service answers at the address
  130  interrupted by Ctrl-C`;

function readVersion(): string {
  // One folder up both from `src` and from `dist`.
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  const manifest: unknown = JSON.parse(text);
  const isKnown = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return isKnown ? String(manifest.version) : "unknown";
}

/**
 * Runs one command line.
 * @param argv words after `plenum`.
 * @returns the exit code.
 */
export async function runProgram(argv: readonly string[], around: Surroundings): Promise<ExitCode> {
  let code: ExitCode = exitCodes.ok;
  const program = createProgram(around, (result) => {
    code = result;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return code;
  } catch (error) {
    // commander has written its message already; its code 0 is --help and --version.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    return reportError(error, around, argv.includes("--json"));
  }
}

/** Every command with its flags; a command that was run says its exit code to `done`. */
export function createProgram(around: Surroundings, done: (code: ExitCode) => void): Command {
  const version = readVersion();
  const program = new Command("plenum");
  // Before the commands: each takes these settings over from its parent when it is made.
  program.exitOverride().configureOutput({
    writeOut: (text) => around.output.write(text),
    writeErr: (text) => around.errors.write(text),
    outputError: (text, write) => write(text.replace(/^error: /, "plenum: ")),
  });
  program
    .description("A model service: one core, many doors.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "explain a command")
    .showHelpAfterError("(--help tells more)")
    .addHelpText("after", helpEnd);
  addServe(program, around, version, done);
  addBridge(program, around, version, done);
  addDiscover(program, around, done);
  addModels(program, around, done);
  addModelState(program, around, done);
  addRun(program, around, done);
  addChat(program, around, done);
  addPs(program, around, done);
  addResponses(program, around, done);
  addTasks(program, around, done);
  addWatch(program, around, done);
  addTokens(program, around, done);
  addBench(program, around, done);
  addStore(program, around, done);
  addDoctor(program, around, version, done);
  addEngine(program, around, done);
  addConformance(program, around, done);
  addCompletion(program, around, done);
  return program;
}
