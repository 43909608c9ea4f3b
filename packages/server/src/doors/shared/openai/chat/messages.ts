import type { ContentPart, InputItem } from "@plenum/core";
import { image, text } from "../content.ts";
import { invalid, refuse } from "../fields.ts";
import type { ChatMessage, ChatPart } from "./schema.ts";

type Assistant = Extract<ChatMessage, { role: "assistant" }>;

export interface ConvertedMessages {
  readonly items: readonly InputItem[];
  /** Where each item stands in the body, such as `messages[2].tool_calls[0].function`. */
  readonly places: readonly string[];
}

/**
 * A conversation as items: an assistant's turn becomes its reasoning, its text and its calls, in that order.
 * @throws CoreError with the part's place as `param`.
 */
export function toItems(messages: readonly ChatMessage[]): ConvertedMessages {
  const items: InputItem[] = [];
  const places: string[] = [];
  for (const [index, message] of messages.entries()) {
    const place = `messages[${index}]`;
    for (const [item, itemPlace] of itemsOf(message, place)) {
      items.push(item);
      places.push(itemPlace);
    }
  }
  return { items, places };
}

function itemsOf(message: ChatMessage, place: string): [InputItem, string][] {
  switch (message.role) {
    case "assistant":
      return assistantItems(message, place);
    case "tool": {
      const output = joinText(message.content, `${place}.content`);
      return [[{ type: "function_call_output", callId: message.tool_call_id, output }, place]];
    }
    default: {
      const content = toParts(message.content, `${place}.content`);
      return [[{ type: "message", role: message.role, content }, place]];
    }
  }
}

function assistantItems(message: Assistant, place: string): [InputItem, string][] {
  if (message.audio != null) refuse(`${place}.audio`, "conversations are text and images");
  if (message.function_call != null) refuse(`${place}.function_call`, "it is deprecated; send tool_calls");
  const items: [InputItem, string][] = [];
  const reasoning = message.reasoning_content ?? message.reasoning;
  if (reasoning) items.push([{ type: "reasoning", text: reasoning }, place]);
  const calls = message.tool_calls ?? [];
  const said = message.content ?? message.refusal;
  if (said == null && calls.length === 0) {
    invalid(`${place}.content`, "an assistant message needs content or tool_calls");
  }
  const content = said == null ? [] : toParts(said, `${place}.content`);
  if (content.length > 0 && !(calls.length > 0 && isEmpty(content))) {
    items.push([{ type: "message", role: "assistant", content }, place]);
  }
  for (const [index, { id, function: called }] of calls.entries()) {
    const item: InputItem = {
      type: "function_call",
      callId: id,
      name: called.name,
      // Some clients write a call without arguments as an empty text.
      arguments: called.arguments.trim() === "" ? "{}" : called.arguments,
    };
    items.push([item, `${place}.tool_calls[${index}].function`]);
  }
  return items;
}

function isEmpty(content: readonly ContentPart[]): boolean {
  return content.every((part) => part.type === "text" && part.text === "");
}

function toParts(content: string | readonly ChatPart[], place: string): readonly ContentPart[] {
  if (typeof content === "string") return [text(content)];
  return content.map((part, index) => toPart(part, `${place}[${index}]`));
}

function toPart(part: ChatPart, place: string): ContentPart {
  switch (part.type) {
    case "text":
      return text(part.text);
    case "refusal":
      return text(part.refusal);
    case "image_url":
      return image(part.image_url.url, part.image_url.detail, `${place}.image_url.url`);
    default:
      return refuse(place, "conversations are text and images");
  }
}

function joinText(content: string | readonly ChatPart[], place: string): string {
  const parts = toParts(content, place);
  return parts
    .map((part, index) =>
      part.type === "text" ? part.text : refuse(`${place}[${index}]`, "what a tool answers is text"),
    )
    .join("");
}
