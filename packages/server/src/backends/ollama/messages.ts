import { type ContentPart, CoreError, type FunctionCallItem, type InputItem, type MessageItem } from "@plenum/core";
import { invalid } from "./errors.ts";

export interface OllamaMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  /** Always a text: `/api/chat` refuses null and parts. */
  readonly content: string;
  readonly thinking?: string;
  /** Base64 without the `data:` head. */
  readonly images?: readonly string[];
  readonly tool_calls?: readonly { readonly id: string; readonly function: OllamaCall }[];
  readonly tool_call_id?: string;
  readonly tool_name?: string;
}

interface OllamaCall {
  readonly name: string;
  /** An object: `/api/chat` refuses its JSON text. Ollama itself reads numbers as 64-bit floats. */
  readonly arguments: unknown;
}

/**
 * Items as messages: calls join the assistant's message before them, a reasoning item the one after it.
 * @throws CoreError invalid-request for images that are no `data:` URL and arguments that are no object
 */
export function toMessages(items: readonly InputItem[]): readonly OllamaMessage[] {
  const builder = new MessageBuilder();
  for (const item of items) builder.add(item);
  return builder.messages;
}

class MessageBuilder {
  readonly messages: OllamaMessage[] = [];
  readonly #names = new Map<string, string>();
  #thinking = "";

  add(item: InputItem): void {
    switch (item.type) {
      case "message":
        this.#push(toMessage(item));
        return;
      case "reasoning":
        this.#thinking += item.text;
        return;
      case "function_call":
        this.#names.set(item.callId, item.name);
        this.#call(item);
        return;
      case "function_call_output": {
        const name = this.#names.get(item.callId);
        this.#push({
          role: "tool",
          content: item.output,
          tool_call_id: item.callId,
          ...(name === undefined ? {} : { tool_name: name }),
        });
        return;
      }
    }
  }

  #push(message: OllamaMessage): void {
    const thinks = message.role === "assistant" && this.#thinking !== "";
    this.messages.push(thinks ? { ...message, thinking: this.#thinking } : message);
    if (message.role !== "tool") this.#thinking = "";
  }

  #call(item: FunctionCallItem): void {
    const call = { id: item.callId, function: { name: item.name, arguments: parsedArguments(item) } };
    const last = this.messages.at(-1);
    if (last?.role === "assistant" && this.#thinking === "") {
      this.messages[this.messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
    } else {
      this.#push({ role: "assistant", content: "", tool_calls: [call] });
    }
  }
}

function toMessage({ role, content }: MessageItem): OllamaMessage {
  const texts = content.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const images = content.flatMap((part) => (part.type === "image" ? [base64Of(part)] : []));
  return {
    role: role === "developer" ? "system" : role,
    content: texts.join("\n"),
    ...(images.length === 0 ? {} : { images }),
  };
}

function base64Of({ url }: Extract<ContentPart, { type: "image" }>): string {
  const [, base64] = /^data:[^,]*;base64,([\s\S]*)$/i.exec(url) ?? [];
  if (base64 === undefined) throw invalid("An image must be a data: URL with base64 bytes for this runtime.", "input");
  return base64;
}

function parsedArguments({ name, arguments: text }: FunctionCallItem): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (cause) {
    throw new CoreError("invalid-request", `The arguments of '${name}' are not JSON.`, { param: "input" }, { cause });
  }
  throw invalid(`The arguments of '${name}' must be the JSON text of an object.`, "input");
}
