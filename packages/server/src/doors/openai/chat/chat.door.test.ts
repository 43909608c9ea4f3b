import { testDoor } from "../../shared/testing/test-door.ts";
import { statusOf } from "../errors.ts";
import { readEvents } from "../testing/read-events.ts";
import { door, errorOf } from "../testing/set-up.ts";

testDoor({
  name: "openai chat",
  door,
  without: [],
  chat: (chat, stream) => ({
    method: "POST",
    path: "/v1/chat/completions",
    body: {
      model: chat.model,
      messages: [
        { role: "system", content: chat.system },
        { role: "user", content: chat.user },
      ],
      max_completion_tokens: chat.maxTokens,
      temperature: chat.temperature,
      top_p: chat.topP,
      seed: chat.seed,
      stop: chat.stop,
      tools: chat.tools.map((tool) => ({ type: "function", function: tool })),
      tool_choice:
        typeof chat.toolChoice === "string"
          ? chat.toolChoice
          : { type: "function", function: { name: chat.toolChoice.name } },
      ...(chat.schema === undefined
        ? {}
        : {
            response_format: {
              type: "json_schema",
              json_schema: { name: "answer", schema: chat.schema, strict: true },
            },
          }),
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
    },
  }),
  read(answer, stream) {
    if (!stream) {
      const { choices, usage } = JSON.parse(answer.text);
      const [{ message, finish_reason: finishReason }] = choices;
      return {
        text: message.content ?? "",
        calls: (message.tool_calls ?? []).map((call: { function: { name: string; arguments: string } }) => ({
          name: call.function.name,
          arguments: JSON.parse(call.function.arguments),
        })),
        finishReason,
        inputTokens: usage.prompt_tokens,
        outputTokens: usage.completion_tokens,
      };
    }
    const chunks = readEvents(answer.text).flatMap(({ json }) => (json === undefined ? [] : [json]));
    const choices = chunks.flatMap((chunk) => chunk.choices);
    const calls: { name: string; arguments: string }[] = [];
    for (const choice of choices) {
      for (const call of choice.delta.tool_calls ?? []) {
        const known = calls[call.index];
        if (known === undefined) calls[call.index] = { ...call.function };
        else known.arguments += call.function.arguments;
      }
    }
    const { usage } = chunks.at(-1);
    return {
      text: choices.map((choice) => choice.delta.content ?? "").join(""),
      calls: calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
      finishReason: choices.find((choice) => choice.finish_reason !== null)?.finish_reason,
      inputTokens: usage.prompt_tokens,
      outputTokens: usage.completion_tokens,
    };
  },
  finishReasons: { stop: "stop", length: "length", toolCalls: "tool_calls" },
  readError: errorOf,
  statusOf: (code) => statusOf({ code, details: {} }),
  readStreamError: (answer) => readEvents(answer.text).at(-1)?.json?.error?.message,
});
