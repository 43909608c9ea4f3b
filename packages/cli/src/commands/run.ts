import { type Client, finalResponse, LmspError, type ResponseRequest } from "@plenum/client";
import type { Command } from "commander";
import { type ConnectionFlags, connect, untilSignal, withConnection, writeJson } from "../connection.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { readNumber, readWhole } from "../read-number.ts";
import { CommandError } from "../report-error.ts";
import { chat } from "../run/chat.ts";
import { findOrStartService } from "../run/own-service.ts";
import { showAnswer, timingsText } from "../run/show-answer.ts";
import { dim, type Surroundings } from "../surroundings.ts";

/** Flags of `plenum run` and `plenum chat`. */
export interface RunFlags extends ConnectionFlags {
  readonly system?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly seed?: number;
  readonly priority?: number;
  readonly background?: boolean;
  readonly verbose?: boolean;
  readonly json?: boolean;
}

/** Adds `plenum run`. */
export function addRun(program: Command, around: Surroundings, done: (code: ExitCode) => void): void {
  withConnection(program.command("run"))
    .summary("ask a model, or chat with it")
    .description(
      "Asks a model and writes its answer as it comes. Without a prompt it chats on a terminal, else it reads the prompt " +
        "from its input. When no service answers on this machine, one is started for the time of the command. Ctrl-C " +
        "cancels the answer, on the service too.",
    )
    .argument("<model>", "id or alias; `plenum models` lists them")
    .argument("[prompt...]", "what to ask; - reads it from the input")
    .option("--system <text>", "instructions before the prompt")
    .option("--max-tokens <number>", "longest answer, in tokens", readWhole)
    .option("--temperature <number>", "0 (always the likeliest) … 2", readNumber)
    .option("--seed <number>", "the same seed gives the same answer", readWhole)
    .option("--priority <number>", "-8 … 8, higher sooner", readNumber)
    .option("--background", "print the response's id and leave; `plenum watch ID` reads the answer, also later")
    .option("--verbose", "tell the response's id, tokens and times after the answer")
    .option("--json", "print the whole response as JSON at its end")
    .addHelpText(
      "after",
      `
Examples:
  plenum run smollm2:135m "Why is the sky blue?"
  plenum run smollm2:135m                                    chat
  git diff | plenum run smollm2:135m --system "Write a commit message for this diff."
  plenum run smollm2:135m "Say hello." --json | jq .usage`,
    )
    .action(async (model: string, prompt: readonly string[], flags: RunFlags) => {
      done(await run(model, prompt.join(" "), flags, around));
    });
}

function requestOf(model: string, flags: RunFlags): Omit<ResponseRequest, "input"> {
  return {
    model,
    ...(flags.system !== undefined && { instructions: flags.system }),
    ...(flags.maxTokens !== undefined && { output: { max_tokens: flags.maxTokens } }),
    ...(flags.priority !== undefined && { priority: flags.priority }),
    sampling: {
      ...(flags.temperature !== undefined && { temperature: flags.temperature }),
      ...(flags.seed !== undefined && { seed: flags.seed }),
    },
  };
}

/** Asks, or chats when there is no prompt and a person is there. */
export async function run(model: string, prompt: string, flags: RunFlags, around: Surroundings): Promise<ExitCode> {
  const isChat = prompt === "" && around.input.isTerminal && !flags.json && !flags.background;
  const input = isChat ? "" : await readPrompt(prompt, around);
  return untilSignal(around, async (signal) => {
    const request = requestOf(model, flags);
    if (flags.background) {
      // Left to a service that stays: one of our own would end with this command, and the answer with it.
      await leaveRunning(connect(flags, around), { ...request, input }, flags, around, signal);
      return exitCodes.ok;
    }
    const service = await findOrStartService(flags, around, signal);
    const { client } = service;
    try {
      if (isChat) return await chat({ client, request, isVerbose: flags.verbose === true, around, signal });
      await answer(client, { ...request, input }, flags, around, signal);
      return exitCodes.ok;
    } finally {
      await service.release();
    }
  });
}

async function readPrompt(prompt: string, around: Surroundings): Promise<string> {
  if (prompt !== "" && prompt !== "-") return prompt;
  const text = (await around.input.readAll()).trim();
  if (text !== "") return text;
  throw new CommandError(
    'There is no prompt: write it after the model, as in plenum run MODEL "Say hello."',
    exitCodes.usage,
  );
}

async function leaveRunning(
  client: Client,
  request: ResponseRequest,
  { json }: RunFlags,
  around: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const response = await client.responses.create({ ...request, background: true }, { signal });
  if (json) writeJson(around, response);
  else around.output.write(`${response.id}\n`);
}

async function answer(
  client: Client,
  request: ResponseRequest,
  flags: RunFlags,
  around: Surroundings,
  signal: AbortSignal,
): Promise<void> {
  const events = client.responses.stream(request, { signal });
  if (!flags.json) {
    const response = await showAnswer(events, around);
    if (flags.verbose) around.errors.write(dim(around.errors, `${response.id}: ${timingsText(response)}\n`));
    return;
  }
  const response = await finalResponse(events);
  if (response === undefined) {
    throw new LmspError({ code: "invalid-answer", detail: "The stream ended without a response." });
  }
  writeJson(around, response);
  if (response.problem !== undefined) throw LmspError.fromProblem(response.problem);
}
