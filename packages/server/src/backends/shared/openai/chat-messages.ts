import type { BackendRequest, ContentPart, InputItem, MessageItem } from "@plenum/core";

interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  content: string | readonly object[];
  tool_calls?: ToolCall[];
  readonly tool_call_id?: string;
  [reasoningField: string]: unknown;
}

/**
 * The conversation as chat messages: one system message first with every system and developer text in order, an
 * assistant's text and calls in one message, text alone as a string.
 * @param reasoningField field for thoughts of the past; undefined: they are left out
 */
export function chatMessages(request: BackendRequest, reasoningField: string | undefined): readonly ChatMessage[] {
  const { input, instructions } = request;
  const items: readonly InputItem[] =
    input.kind === "items"
      ? input.items
      : [{ type: "message", role: "user", content: [{ type: "text", text: input.prompt }] }];
  const system = [instructions ?? "", ...items.filter(isSystem).map(({ content }) => textOf(content))];
  const systemText = system.filter((text) => text !== "").join("\n\n");
  const messages: ChatMessage[] = systemText === "" ? [] : [{ role: "system", content: systemText }];
  let thoughts = "";
  for (const item of items) {
    if (isSystem(item)) continue;
    if (item.type === "reasoning") thoughts += item.text;
    else {
      const message = add(messages, item);
      if (thoughts !== "" && message.role === "assistant" && reasoningField !== undefined) {
        message[reasoningField] = thoughts;
      }
      thoughts = "";
    }
  }
  return messages;
}

function add(messages: ChatMessage[], item: Exclude<InputItem, { type: "reasoning" }>): ChatMessage {
  if (item.type === "function_call") return addCall(messages, item);
  const message: ChatMessage =
    item.type === "function_call_output"
      ? { role: "tool", tool_call_id: item.callId, content: item.output }
      : { role: item.role === "assistant" ? "assistant" : "user", content: contentOf(item.content) };
  messages.push(message);
  return message;
}

function addCall(messages: ChatMessage[], item: Extract<InputItem, { type: "function_call" }>): ChatMessage {
  const call: ToolCall = {
    id: item.callId,
    type: "function",
    function: { name: item.name, arguments: item.arguments },
  };
  const last = messages.at(-1);
  if (last?.role === "assistant") {
    last.tool_calls = [...(last.tool_calls ?? []), call];
    return last;
  }
  const message: ChatMessage = { role: "assistant", content: "", tool_calls: [call] };
  messages.push(message);
  return message;
}

function isSystem(item: InputItem): item is MessageItem {
  return item.type === "message" && (item.role === "system" || item.role === "developer");
}

function textOf(content: readonly ContentPart[]): string {
  return content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
}

function contentOf(content: readonly ContentPart[]): ChatMessage["content"] {
  if (content.every(({ type }) => type === "text")) return textOf(content);
  return content.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text };
    const { url, detail } = part;
    return { type: "image_url", image_url: { url, ...(detail === undefined ? {} : { detail }) } };
  });
}
