import type { ContentPart, InputItem, MessageItem } from "@plenum/core";
import { toDataUrl } from "./images.ts";
import { refuseField } from "./refusal.ts";
import type { WireMessage, WireToolCall } from "./schema.ts";

/** A call of the conversation that no tool message has answered yet. */
interface OpenCall {
  readonly callId: string;
  readonly name: string;
  /** True: the client gave it an id, so that only this id means it. */
  readonly isIdentified: boolean;
}

/** Ollama's messages as items. Ollama's calls often have no id: they get one by their place. */
export function toItems(messages: readonly WireMessage[]): InputItem[] {
  const items: InputItem[] = [];
  const open: OpenCall[] = [];
  let calls = 0;
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      if (message.images?.length) refuseField(`messages[${index}].images`, "can't be part of a tool's answer.");
      items.push({
        type: "function_call_output",
        callId: takeCall(open, message) || message.tool_call_id || `call_${calls++}`,
        output: message.content ?? "",
      });
      continue;
    }
    if (message.role === "assistant" && message.thinking) items.push({ type: "reasoning", text: message.thinking });
    if (hasContent(message)) items.push(toMessage(message, message.role));
    for (const call of message.tool_calls ?? []) {
      const item = toCall(call, calls++);
      items.push(item);
      open.push({ ...item, isIdentified: Boolean(call.id) });
    }
  }
  return items;
}

/** Text and images as parts; images first, where Ollama's templates put them. */
export function toParts(text: string, images: readonly string[]): ContentPart[] {
  const parts: ContentPart[] = images.map((image) => ({ type: "image", url: toDataUrl(image) }));
  if (text !== "" || parts.length === 0) parts.push({ type: "text", text });
  return parts;
}

/** An assistant's turn that only calls tools or thinks has no message of its own. */
function hasContent({ content, images, tool_calls, thinking }: WireMessage): boolean {
  return Boolean(content) || Boolean(images?.length) || !(tool_calls?.length || thinking);
}

function toMessage(message: WireMessage, role: MessageItem["role"]): MessageItem {
  return { type: "message", role, content: toParts(message.content ?? "", message.images ?? []) };
}

/** Whole numbers beyond 2^53 were rounded when the body was parsed. */
function toCall({ id, function: called }: WireToolCall, place: number) {
  return {
    type: "function_call",
    callId: id || `call_${place}`,
    name: called.name,
    arguments: JSON.stringify(called.arguments ?? {}),
  } as const;
}

/** Id of the call that a tool message answers: by its id, else by the tool's name, else the first one open. */
function takeCall(open: OpenCall[], message: WireMessage): string | undefined {
  const id = message.tool_call_id;
  const name = message.tool_name || message.name;
  const mayMean = (call: OpenCall): boolean => !id || !call.isIdentified;
  let index = id ? open.findIndex(({ callId }) => callId === id) : -1;
  if (index < 0 && name) index = open.findIndex((call) => mayMean(call) && call.name === name);
  if (index < 0) index = open.findIndex(mayMean);
  return index < 0 ? undefined : open.splice(index, 1)[0]?.callId;
}
