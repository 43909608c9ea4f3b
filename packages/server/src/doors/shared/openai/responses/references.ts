import { CoreError, type OutputItem, type Response } from "@plenum/core";
import type { ResponsesBody, ResponsesItem } from "./schema.ts";

/** `<kind>_<x>_<n>`: an output item names the response that made it. */
const itemId = /^[a-z]+_(.+)_\d+$/;

/**
 * Puts the items themselves in the place of references to output of earlier responses: some SDKs send nothing else of
 * what they were answered.
 * @param find the response of an id, or a rejection when there is none for this caller.
 * @throws CoreError not-found with the reference's place as `param`.
 */
export async function resolveReferences(
  input: ResponsesBody["input"],
  find: (responseId: string) => Promise<Response>,
): Promise<ResponsesBody["input"]> {
  if (typeof input === "string" || !input.some((item) => item.type === "item_reference")) return input;
  const responses = new Map<string, Promise<Response>>();
  const findOnce = (id: string): Promise<Response> => {
    const found = responses.get(id) ?? find(id);
    responses.set(id, found);
    return found;
  };
  const resolve = async (item: ResponsesItem, index: number): Promise<ResponsesItem> => {
    if (item.type !== "item_reference") return item;
    const x = itemId.exec(item.id)?.[1];
    const response = x === undefined ? undefined : await findOnce(`resp_${x}`).catch(() => undefined);
    const output = response?.output.find(({ id }) => id === item.id);
    if (output !== undefined) return toWireItem(output);
    throw new CoreError("not-found", `There is no item '${item.id}' any more; send the item itself.`, {
      param: `input[${index}].id`,
    });
  };
  return Promise.all(input.map(resolve));
}

function toWireItem(item: OutputItem): ResponsesItem {
  switch (item.type) {
    case "message":
      return { type: "message", role: "assistant", content: item.text === "" ? item.refusal : item.text };
    case "reasoning":
      return { type: "reasoning", content: [{ text: item.text }] };
    case "function_call":
      return { type: "function_call", call_id: item.callId, name: item.name, arguments: item.arguments };
  }
}
