import { type Command, InvalidArgumentError } from "commander";
import { type BenchSettings, runBench } from "../bench/run-bench.ts";
import { resultJson, resultText } from "../bench/show-result.ts";
import { type ConnectionFlags, withClient, withConnection, writeJson } from "../connection.ts";
import type { ExitCode } from "../exit-codes.ts";
import { createProgressBar } from "../progress-bar.ts";
import { wholeWithin } from "../read-number.ts";
import { CommandError } from "../report-error.ts";
import { type Surroundings, withoutControls } from "../surroundings.ts";

type BenchFlags = ConnectionFlags & BenchSettings & { readonly json?: boolean };

const mostStreams = 256;

/** Adds `plenum bench`. */
export function addBench(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("bench"))
    .summary("measure how fast a model answers")
    .description(
      "Measures a model through a running service: time to the first token (ttft), prompt tokens a second, and tokens a " +
        "second with 1, 2, 4 and 8 streams at once. Times are taken here, at the client; tokens are the service's own " +
        "count. Prompts are numbers to count on from, each another one. Ctrl-C cancels everything, on the service too.",
    )
    .argument("<model>", "id or alias; `plenum models` lists them")
    .option("--parallel <list>", "streams at once, such as 1,2,4,8", readLevels, [1, 2, 4, 8])
    .option("--tokens <number>", "longest answer, in tokens, 8 … 100000", wholeWithin(8, 100_000), 128)
    .option("--rounds <number>", "counted rounds of each level, 1 … 100", wholeWithin(1, 100), 5)
    .option("--prompt-tokens <number>", "length of a prompt, about, 16 … 1000000", wholeWithin(16, 1_000_000), 256)
    .option("--json", "print the numbers as JSON")
    .addHelpText(
      "after",
      `
Examples:
  plenum bench smollm2:135m
  plenum bench smollm2:135m --parallel 1,4 --tokens 64 --rounds 3
  plenum bench smollm2:135m --json | jq '.levels[].tokens_per_second'`,
    )
    .action(async (model: string, flags: BenchFlags) => done(await bench(model, flags, around)));
}

function readLevels(value: string): readonly number[] {
  const levels = value.split(",").map((word) => (/^\s*\d+\s*$/.test(word) ? Number(word) : 0));
  if (levels.every((level) => level >= 1 && level <= mostStreams)) return [...new Set(levels)].sort((a, b) => a - b);
  throw new InvalidArgumentError(`It is no list such as 1,2,4 of numbers from 1 to ${mostStreams}.`);
}

function bench(name: string, flags: BenchFlags, around: Surroundings): Promise<ExitCode> {
  const bar = createProgressBar(around.errors);
  return withClient(flags, around, async (client, signal) => {
    const model = await client.models.get(name, { signal });
    if (!model.capabilities.completion && !model.capabilities.chat) {
      throw new CommandError(`${model.id} gives no answers to measure: it neither chats nor completes.`);
    }
    const result = await runBench({
      client,
      model,
      settings: flags,
      signal,
      onProgress: (progress) => bar.update({ ...progress, unit: "answers" }),
    }).finally(() => bar.end());
    const isDrawn = around.output.isTerminal && !around.env["NO_COLOR"];
    if (flags.json) writeJson(around, resultJson(model, flags, result));
    else around.output.write(withoutControls(resultText(model, flags, result, isDrawn)));
  });
}
