import type { ProblemCode } from "@plenum/core";
import { CoreError } from "@plenum/core";
import type { MemoryResponder } from "../shared/testing/memory-responder.ts";
import { type DoorUnderTest, type NeutralAnswer, type NeutralChat, testDoor } from "../shared/testing/test-door.ts";
import { statusOf } from "./errors.ts";
import { createOllamaDoor } from "./index.ts";

interface Line {
  readonly message?: {
    readonly content: string;
    readonly tool_calls?: { readonly function: { readonly name: string; readonly arguments: unknown } }[];
  };
  readonly done?: boolean;
  readonly done_reason?: string;
  readonly prompt_eval_count?: number;
  readonly eval_count?: number;
  readonly error?: string;
}

function linesOf(answer: MemoryResponder): Line[] {
  const lines = answer.text.split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line));
}

function chatBody(chat: NeutralChat, stream: boolean): Record<string, unknown> {
  return {
    model: chat.model,
    messages: [
      { role: "system", content: chat.system },
      { role: "user", content: chat.user },
    ],
    tools: chat.tools.map((tool) => ({ type: "function", function: tool })),
    tool_choice:
      typeof chat.toolChoice === "string" ? chat.toolChoice : { type: "function", function: chat.toolChoice },
    ...(chat.schema === undefined ? {} : { format: chat.schema }),
    options: {
      num_predict: chat.maxTokens,
      temperature: chat.temperature,
      top_p: chat.topP,
      seed: chat.seed,
      stop: chat.stop,
    },
    stream,
  };
}

function read(answer: MemoryResponder): NeutralAnswer {
  const lines = linesOf(answer);
  const last = lines.at(-1);
  const calls = lines.flatMap(({ message }) => message?.tool_calls ?? []);
  return {
    text: lines.map(({ message }) => message?.content ?? "").join(""),
    calls: calls.map((call) => ({ name: call.function.name, arguments: call.function.arguments })),
    finishReason: last?.done_reason ?? "",
    inputTokens: last?.prompt_eval_count ?? 0,
    outputTokens: last?.eval_count ?? 0,
  };
}

const under: DoorUnderTest = {
  name: "ollama chat",
  door: createOllamaDoor({ version: "1.2.3" }),
  chat: (chat, stream) => ({ method: "POST", path: "/api/chat", body: chatBody(chat, stream) }),
  read,
  finishReasons: { stop: "stop", length: "length", toolCalls: "stop" },
  readError: (answer) => ({ message: linesOf(answer)[0]?.error ?? "" }),
  statusOf: (code: ProblemCode) => statusOf(new CoreError(code, "x")),
  without: [],
  readStreamError: (answer) => linesOf(answer).at(-1)?.error,
};

testDoor(under);
