import type { Call, Operation } from "../../shared/door.ts";
import { toChatRequest } from "../../shared/openai/chat/request.ts";
import { toChatCompletion } from "../../shared/openai/chat/response.ts";
import { chatSchema } from "../../shared/openai/chat/schema.ts";
import { ChatStream } from "../../shared/openai/chat/stream.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { runConverted } from "../run.ts";

export const chatOperations: readonly Operation[] = [
  {
    name: "chat.completions.create",
    method: "POST",
    path: "/v1/chat/completions",
    scope: "infer",
    handle: createChat,
  },
];

async function createChat(call: Call): Promise<void> {
  const headers = readRequestHeaders(call.request.headers, call.core.clock.now());
  const converted = toChatRequest(call.json(chatSchema), headers);
  await runConverted(call, converted, {
    endsWithDone: true,
    toSource: ({ toWireError, param }) => new ChatStream({ toWireError, param, includeUsage: converted.includeUsage }),
    toBody: toChatCompletion,
  });
}
