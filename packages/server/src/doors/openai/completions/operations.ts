import type { Call, Operation } from "../../shared/door.ts";
import { toCompletionRequest } from "../../shared/openai/completions/request.ts";
import { toTextCompletion } from "../../shared/openai/completions/response.ts";
import { completionSchema } from "../../shared/openai/completions/schema.ts";
import { CompletionStream } from "../../shared/openai/completions/stream.ts";
import { readRequestHeaders } from "../../shared/request-headers.ts";
import { runConverted } from "../run.ts";

export const completionOperations: readonly Operation[] = [
  { name: "completions.create", method: "POST", path: "/v1/completions", scope: "infer", handle: createCompletion },
];

async function createCompletion(call: Call): Promise<void> {
  const headers = readRequestHeaders(call.request.headers, call.core.clock.now());
  const converted = toCompletionRequest(call.json(completionSchema), headers);
  await runConverted(call, converted, {
    endsWithDone: true,
    toSource: (parts) => new CompletionStream({ ...parts, includeUsage: converted.includeUsage }),
    toBody: toTextCompletion,
  });
}
