import type { ResponseRecord } from "@plenum/core";
import type { Call } from "../../shared/door.ts";
import { inWordsOf } from "../../shared/openai/converted.ts";

/** The response that the path names. @throws CoreError not-found */
export function findResponse(call: Call): Promise<ResponseRecord> {
  return inWordsOf({ param: () => "response_id" }, () => call.core.responses.get(call.rest, call.caller.principal));
}
