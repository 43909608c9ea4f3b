import type { Client, InputItem, ResponseRequest } from "@plenum/client";
import { LmspError, outputText } from "@plenum/client";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { reportError } from "../report-error.ts";
import { dim, type Surroundings } from "../surroundings.ts";
import { showAnswer, timingsText } from "./show-answer.ts";

export interface ChatOptions {
  readonly client: Client;
  /** Everything but the input. */
  readonly request: Omit<ResponseRequest, "input">;
  readonly isVerbose: boolean;
  readonly around: Surroundings;
  /** Ends the conversation. */
  readonly signal: AbortSignal;
}

const help = "/clear forgets the conversation, /bye or Ctrl-D leaves, Ctrl-C stops an answer.\n";

/** Talks with a person, line by line, until they leave. An error ends the turn, not the conversation. */
export async function chat(options: ChatOptions): Promise<ExitCode> {
  const { around, request } = options;
  const lines = around.input.openLines();
  let answering: AbortController | undefined;
  let isLeft = false;
  const leave = () => {
    isLeft = true;
    answering?.abort();
    lines.close();
  };
  lines.onInterrupt(() => (answering === undefined ? leave() : answering.abort()));
  options.signal.addEventListener("abort", leave, { once: true });
  around.errors.write(dim(around.errors, `Chat with ${request.model}. ${help}`));
  let conversation: readonly InputItem[] = [];
  try {
    while (true) {
      const line = await lines.ask(">>> ");
      if (line === undefined || line.trim() === "/bye") break;
      if (line.trim() === "/clear") conversation = [];
      else if (line.trim() === "/help" || line.trim() === "/?") around.errors.write(help);
      else if (line.trim() !== "") {
        answering = new AbortController();
        conversation = await turn(options, [...conversation, { role: "user", content: line }], answering.signal);
        answering = undefined;
      }
    }
  } finally {
    lines.close();
  }
  if (around.output.isTerminal) around.output.write("\n");
  return isLeft ? exitCodes.interrupted : exitCodes.ok;
}

/** The conversation after an answer; as before the question when there is none. */
async function turn(
  { client, request, isVerbose, around }: ChatOptions,
  asked: readonly InputItem[],
  signal: AbortSignal,
): Promise<readonly InputItem[]> {
  try {
    const response = await showAnswer(client.responses.stream({ ...request, input: asked }, { signal }), around);
    if (isVerbose) around.errors.write(dim(around.errors, `${timingsText(response)}\n`));
    return [...asked, { role: "assistant", content: outputText(response) }];
  } catch (error) {
    if (signal.aborted) around.errors.write(dim(around.errors, "(stopped)\n"));
    else if (error instanceof LmspError) reportError(error, around, false);
    else throw error;
    return asked.slice(0, -1);
  }
}
