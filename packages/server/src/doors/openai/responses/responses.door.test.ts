import { testDoor } from "../../shared/testing/test-door.ts";
import { statusOf } from "../errors.ts";
import { readEvents } from "../testing/read-events.ts";
import { door, errorOf } from "../testing/set-up.ts";

testDoor({
  name: "openai responses",
  door,
  without: [],
  chat: (chat, stream) => ({
    method: "POST",
    path: "/v1/responses",
    body: {
      model: chat.model,
      input: [
        { role: "system", content: chat.system },
        { type: "message", role: "user", content: [{ type: "input_text", text: chat.user }] },
      ],
      max_output_tokens: chat.maxTokens,
      temperature: chat.temperature,
      top_p: chat.topP,
      seed: chat.seed,
      stop: chat.stop,
      tools: chat.tools.map((tool) => ({ type: "function", ...tool })),
      tool_choice: typeof chat.toolChoice === "string" ? chat.toolChoice : { type: "function", ...chat.toolChoice },
      ...(chat.schema === undefined
        ? {}
        : { text: { format: { type: "json_schema", name: "answer", schema: chat.schema, strict: true } } }),
      stream,
    },
  }),
  read(answer, stream) {
    const response = stream ? readEvents(answer.text).at(-1)?.json.response : JSON.parse(answer.text);
    const items: { type: string; name: string; arguments: string; content: { text: string }[] }[] = response.output;
    return {
      text: items
        .filter((item) => item.type === "message")
        .flatMap((item) => item.content.map((part) => part.text))
        .join(""),
      calls: items
        .filter((item) => item.type === "function_call")
        .map((item) => ({ name: item.name, arguments: JSON.parse(item.arguments) })),
      finishReason: response.incomplete_details?.reason ?? response.status,
      inputTokens: response.usage?.input_tokens,
      outputTokens: response.usage?.output_tokens,
    };
  },
  finishReasons: { stop: "completed", length: "max_output_tokens", toolCalls: "completed" },
  readError: errorOf,
  statusOf: (code) => statusOf({ code, details: {} }),
  readStreamError: (answer) => readEvents(answer.text).at(-1)?.json?.response?.error?.message,
});
