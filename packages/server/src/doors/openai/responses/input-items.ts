import { CoreError, type ResponseInput, uniquePart } from "@plenum/core";
import type { Call } from "../../shared/door.ts";
import { toInputItem } from "../../shared/openai/responses/output-items.ts";
import { answerJson } from "../../shared/run-response.ts";
import { findResponse } from "./find-response.ts";

/** Items in one page when none is asked for, and at most, as in OpenAI's API. */
const pageItems = { default: 20, most: 100 } as const;

/** `GET /v1/responses/<id>/input_items`: the conversation that a response answered, newest first. */
export async function listInputItems(call: Call): Promise<void> {
  const { query } = call.request;
  const { request, response } = await findResponse(call);
  const items = itemsOf(request.input).map((item, index) => toInputItem(item, uniquePart(response.id), index));
  if (query.get("order") !== "asc") items.reverse();
  const after = query.get("after");
  const start = after === null ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== null && start === 0) {
    throw new CoreError("not-found", `There is no item '${after}' in this response.`, { param: "after" });
  }
  const limit = limitOf(query.get("limit"));
  const data = items.slice(start, start + limit);
  answerJson(call, 200, {
    object: "list",
    data,
    first_id: data[0]?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
    has_more: start + limit < items.length,
  });
}

function itemsOf(input: ResponseInput) {
  if (input.kind === "items") return input.items;
  return [{ type: "message", role: "user", content: [{ type: "text", text: input.prompt }] }] as const;
}

function limitOf(text: string | null): number {
  if (text === null) return pageItems.default;
  const limit = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (limit >= 1 && limit <= pageItems.most) return limit;
  throw new CoreError("invalid-request", `limit must be a whole number from 1 to ${pageItems.most}.`, {
    param: "limit",
  });
}
