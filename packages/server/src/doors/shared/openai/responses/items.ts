import type { ContentPart, InputItem } from "@plenum/core";
import { image, text } from "../content.ts";
import { refuse } from "../fields.ts";
import type { ResponsesBody, ResponsesItem, ResponsesPart } from "./schema.ts";

export interface ConvertedInput {
  readonly items: readonly InputItem[];
  /** Where each item stands in the body. */
  readonly places: readonly string[];
}

/**
 * @param input with its references resolved.
 * @throws CoreError with the item's place as `param`.
 */
export function toItems(input: ResponsesBody["input"]): ConvertedInput {
  if (typeof input === "string") {
    return { items: [{ type: "message", role: "user", content: [text(input)] }], places: ["input"] };
  }
  const items: InputItem[] = [];
  const places: string[] = [];
  for (const [index, wire] of input.entries()) {
    const item = toItem(wire, `input[${index}]`);
    if (item === undefined) continue;
    items.push(item);
    places.push(`input[${index}]`);
  }
  return { items, places };
}

function toItem(item: ResponsesItem, place: string): InputItem | undefined {
  switch (item.type) {
    case "message":
      return { type: "message", role: item.role, content: toParts(item.content, `${place}.content`) };
    case "function_call": {
      const { call_id: callId, name } = item;
      return { type: "function_call", callId, name, arguments: item.arguments.trim() === "" ? "{}" : item.arguments };
    }
    case "function_call_output":
      return { type: "function_call_output", callId: item.call_id, output: joinText(item.output, `${place}.output`) };
    case "reasoning": {
      // Encrypted reasoning of another service says nothing here.
      const said = (item.content?.length ? item.content : (item.summary ?? [])).map((part) => part.text).join("\n");
      return said === "" ? undefined : { type: "reasoning", text: said };
    }
    case "item_reference":
      return refuse(place, "send the item itself");
  }
}

function toParts(content: string | readonly ResponsesPart[], place: string): readonly ContentPart[] {
  if (typeof content === "string") return [text(content)];
  return content.map((part, index) => toPart(part, `${place}[${index}]`));
}

function toPart(part: ResponsesPart, place: string): ContentPart {
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return text(part.text);
    case "refusal":
      return text(part.refusal);
    case "input_image":
      if (part.image_url == null) return refuse(`${place}.file_id`, "files are not kept here; send image_url");
      return image(part.image_url, part.detail, `${place}.image_url`);
    default:
      return refuse(place, "conversations are text and images");
  }
}

function joinText(content: string | readonly ResponsesPart[], place: string): string {
  return toParts(content, place)
    .map((part, index) =>
      part.type === "text" ? part.text : refuse(`${place}[${index}]`, "what a function answers is text"),
    )
    .join("");
}
