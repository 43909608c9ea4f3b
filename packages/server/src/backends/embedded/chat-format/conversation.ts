import {
  type BackendRequest,
  type ContentPart,
  CoreError,
  type FunctionCallItem,
  type InputItem,
  type MessageItem,
} from "@plenum/core";
import { callText, outputText } from "./emulated-tools.ts";
import type { TemplateMessage, TemplateToolCall } from "./message.ts";
import type { TemplateTraits } from "./template-traits.ts";

/** A request as messages. */
export interface Conversation {
  /** Undefined: nothing was said, and the template's own default stands. Empty: nothing is wanted. */
  readonly system: string | undefined;
  readonly messages: readonly TemplateMessage[];
  /** Text of a last assistant message, which the answer continues. */
  readonly prefill?: { readonly text: string; readonly reasoning?: string };
}

/**
 * Items as the messages of a template. System and developer texts and `instructions` become one system text, in order.
 * Calls join the assistant's message before them. A conversation that ends with an assistant's message is continued, as
 * llama-server does: that text is put behind the generation prompt and is not part of the answer; a format or forced
 * call holds for the answer alone.
 * @throws CoreError unsupported-capability for images
 */
export function buildConversation(request: BackendRequest, traits: TemplateTraits): Conversation {
  const items = itemsOf(request);
  const system = [
    ...(request.instructions === undefined ? [] : [request.instructions]),
    ...items.flatMap((item) => (item.type === "message" && isSystem(item) ? [textOf(item)] : [])),
  ];
  const rest = items.filter((item) => !isSystem(item));
  const last = rest.at(-1);
  const isContinued = last?.type === "message" && last.role === "assistant";
  const builder = new MessageBuilder(traits);
  for (const item of isContinued ? rest.slice(0, -1) : rest) builder.add(item);
  const { messages, reasoning } = builder.end();
  const systemText = system.length === 0 ? undefined : system.filter((text) => text !== "").join("\n\n");
  if (!isContinued) return { system: systemText, messages };
  const prefill = { text: textOf(last), ...(reasoning === "" ? {} : { reasoning }) };
  return { system: systemText, messages, prefill };
}

function itemsOf({ input }: BackendRequest): readonly InputItem[] {
  if (input.kind === "items") return input.items;
  return [{ type: "message", role: "user", content: [{ type: "text", text: input.prompt }] }];
}

function isSystem(item: InputItem): boolean {
  return item.type === "message" && (item.role === "system" || item.role === "developer");
}

/** The parts' texts, one under the other. */
function textOf(item: MessageItem): string {
  return item.content.map(partText).join("\n");
}

function partText(part: ContentPart): string {
  if (part.type === "text") return part.text;
  throw new CoreError("unsupported-capability", "This model reads text only; send no images.", {
    param: "input",
    capability: "vision",
  });
}

class MessageBuilder {
  readonly #traits: TemplateTraits;
  readonly #messages: TemplateMessage[] = [];
  readonly #names = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  #reasoning = "";

  constructor(traits: TemplateTraits) {
    this.#traits = traits;
  }

  add(item: InputItem): void {
    switch (item.type) {
      case "message":
        this.#push({ role: item.role === "assistant" ? "assistant" : "user", content: textOf(item) });
        return;
      case "reasoning":
        this.#reasoning += item.text;
        return;
      case "function_call":
        this.#names.set(item.callId, item.name);
        this.#call(item);
        return;
      case "function_call_output":
        this.#output(item.callId, item.output);
        return;
    }
  }

  end(): { readonly messages: readonly TemplateMessage[]; readonly reasoning: string } {
    return { messages: this.#messages, reasoning: this.#reasoning };
  }

  #push(message: TemplateMessage): void {
    const hasReasoning = message.role === "assistant" && this.#reasoning !== "";
    this.#messages.push(hasReasoning ? { ...message, reasoning_content: this.#reasoning } : message);
    this.#reasoning = "";
  }

  #call(item: FunctionCallItem): void {
    if (!this.#traits.callHistory) {
      this.#append("assistant", callText(item.name, item.arguments));
      return;
    }
    const call: TemplateToolCall = {
      id: this.#idOf(item.callId),
      type: "function",
      function: { name: item.name, arguments: item.arguments },
    };
    const last = this.#messages.at(-1);
    if (last?.role !== "assistant") {
      this.#push({ role: "assistant", content: "", tool_calls: [call] });
      return;
    }
    this.#messages[this.#messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
  }

  #output(callId: string, output: string): void {
    if (!this.#traits.callHistory) {
      this.#append("user", outputText(output));
      return;
    }
    const name = this.#names.get(callId);
    this.#push({
      role: "tool",
      content: output,
      tool_call_id: this.#idOf(callId),
      ...(name === undefined ? {} : { name }),
    });
  }

  /** Emulated calls and outputs stand together in one message. */
  #append(role: "assistant" | "user", text: string): void {
    const last = this.#messages.at(-1);
    const joins =
      role === "assistant" ? last?.role === role : last?.role === role && last.content.endsWith("</tool_response>");
    if (last === undefined || !joins) {
      this.#push({ role, content: text });
      return;
    }
    const content = last.content === "" ? text : `${last.content}\n${text}`;
    this.#messages[this.#messages.length - 1] = { ...last, content };
  }

  #idOf(callId: string): string {
    if (!this.#traits.shortCallIds || /^[a-zA-Z0-9]{9}$/.test(callId)) return callId;
    const known = this.#ids.get(callId) ?? `call${String(this.#ids.size).padStart(5, "0")}`;
    this.#ids.set(callId, known);
    return known;
  }
}
