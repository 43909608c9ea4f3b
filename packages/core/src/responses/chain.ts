import type { ResponseRecord } from "../ports/store.ts";
import { CoreError } from "../problems/core-error.ts";
import type { InputItem } from "../request/items.ts";
import type { ResponseRequest } from "../request/request.ts";
import type { OutputItem } from "./response.ts";

/** An answer's first candidate as items of a later request. Reasoning is not sent again. */
function outputAsInput(output: readonly OutputItem[]): InputItem[] {
  const items: InputItem[] = [];
  for (const item of output) {
    if (item.candidate !== 0) continue;
    if (item.type === "message") {
      items.push({ type: "message", role: "assistant", content: [{ type: "text", text: item.text }] });
    } else if (item.type === "function_call") {
      items.push({ type: "function_call", callId: item.callId, name: item.name, arguments: item.arguments });
    }
  }
  return items;
}

/**
 * The request with the conversation before it put in front. The earlier request is kept unrolled, so one step reaches
 * its beginning; its `instructions` do not carry over, as in OpenAI's Responses.
 * @throws CoreError invalid-request when the earlier one is no conversation or has not ended.
 */
export function unroll(request: ResponseRequest, earlier: ResponseRecord): ResponseRequest {
  const { previousResponseId: _chained, ...rest } = request;
  const before = earlier.request.input;
  if (request.input.kind !== "items" || before.kind !== "items") {
    throw new CoreError("invalid-request", "Only conversations can be continued, not completions.", {
      param: "previous_response_id",
    });
  }
  if (earlier.response.finishedAt === undefined) {
    throw new CoreError("invalid-request", `'${earlier.response.id}' has not ended yet; wait for it.`, {
      param: "previous_response_id",
    });
  }
  const items = [...before.items, ...outputAsInput(earlier.response.output), ...request.input.items];
  return { ...rest, input: { kind: "items", items } };
}
