import type { Command } from "commander";
import { withConnection } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { readNumber, readWhole } from "../read-number.ts";
import type { Surroundings } from "../surroundings.ts";
import { type RunFlags, run } from "./run.ts";

/** Adds `plenum chat`. */
export function addChat(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("chat <model>"))
    .summary("talk with a model")
    .description(
      "Talks with a model, line by line; /help tells what can be typed. The same as `plenum run` without a prompt.",
    )
    .option("--system <text>", "instructions before the conversation")
    .option("--max-tokens <number>", "longest answer, in tokens", readWhole)
    .option("--temperature <number>", "0 (always the likeliest) … 2", readNumber)
    .option("--verbose", "tell each response's id, tokens and times")
    .addHelpText(
      "after",
      '\nExamples:\n  plenum chat smollm2:135m\n  plenum chat smollm2:135m --system "Answer in rhyme."',
    )
    .action(async (model: string, flags: RunFlags) => done(await run(model, "", flags, around)));
}
