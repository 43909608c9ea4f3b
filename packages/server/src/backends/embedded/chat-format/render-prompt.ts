import { type BackendRequest, CoreError } from "@plenum/core";
import type { ThinkStart } from "../../shared/think-tags.ts";
import { type ChatTemplate, TemplateError, type TemplateInput } from "./chat-template.ts";
import { buildConversation, type Conversation } from "./conversation.ts";
import { describeTool, toolsText } from "./emulated-tools.ts";
import type { TemplateMessage } from "./message.ts";
import type { TemplateTraits } from "./template-traits.ts";
import type { TextGuard } from "./text-guard.ts";

export interface PromptText {
  /** With the guard's marks. */
  readonly text: string;
  readonly thinkStart: ThinkStart;
}

/** Whether the request shows its tools to the model. */
export function hasTools(request: BackendRequest): boolean {
  return request.tools.length > 0 && request.toolChoice !== "none";
}

/** @throws CoreError invalid-request when the template refuses the conversation, backend-error when it can't be used */
export function renderPrompt(
  request: BackendRequest,
  template: ChatTemplate,
  traits: TemplateTraits,
  guard: TextGuard,
): PromptText {
  const conversation = buildConversation(request, traits);
  const text = renderConversation(request, conversation, { template, traits, guard });
  return begin(text, request, conversation, traits, guard);
}

interface Renderer {
  readonly template: ChatTemplate;
  readonly traits: TemplateTraits;
  readonly guard: TextGuard;
}

/** Tries the messages as they are, then in strict alternation for templates that ask for that. */
function renderConversation(
  request: BackendRequest,
  conversation: Conversation,
  { template, traits, guard }: Renderer,
): string {
  const isNative = traits.toolSyntax !== undefined;
  const shown = hasTools(request) ? request.tools : [];
  const tools = isNative || shown.length === 0 ? [] : [toolsText(shown, request.toolChoice)];
  const system = [...(conversation.system === undefined ? [] : [conversation.system]), ...tools];
  const systemText = system.length === 0 ? undefined : system.filter((each) => each !== "").join("\n\n");
  const input: Omit<TemplateInput, "messages"> = {
    tools: isNative ? shown.map((tool) => ({ type: "function", function: describeTool(tool) })) : [],
    ...thinkingOf(request),
  };
  let failure: unknown;
  for (const messages of [conversation.messages, alternating(conversation.messages)]) {
    try {
      return template.render({ ...input, messages: withSystem(systemText, messages, traits) }, traits.form, guard);
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      failure ??= error;
    }
  }
  const reason = failure instanceof TemplateError ? failure.message : "unknown";
  if (!traits.isUsable) {
    throw new CoreError(
      "backend-error",
      `The model's chat template can't be used here (${reason}).`,
      {},
      { cause: failure },
    );
  }
  throw new CoreError(
    "invalid-request",
    `The model's chat template refuses this conversation (${reason}); change the order or kind of its messages.`,
    { param: "input" },
    { cause: failure },
  );
}

/** `enable_thinking` is left to the template unless the request says something. */
function thinkingOf({ reasoning }: BackendRequest): Pick<TemplateInput, "enableThinking" | "reasoningEffort"> {
  const { effort } = reasoning;
  if (effort === undefined) return {};
  return effort === "none" ? { enableThinking: false } : { enableThinking: true, reasoningEffort: effort };
}

/** One system message in front, or its text in the first message of the user where the template knows no such role. */
function withSystem(
  system: string | undefined,
  messages: readonly TemplateMessage[],
  traits: TemplateTraits,
): readonly TemplateMessage[] {
  if (system === undefined) return messages;
  if (traits.systemRole) return [{ role: "system", content: system }, ...messages];
  if (system === "") return messages;
  const first = messages[0];
  if (first?.role !== "user") return [{ role: "user", content: system }, ...messages];
  return [{ ...first, content: first.content === "" ? system : `${system}\n\n${first.content}` }, ...messages.slice(1)];
}

/** User first, and never two messages of the same role in a row. */
function alternating(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const result: TemplateMessage[] = [];
  for (const message of messages) {
    const last = result.at(-1);
    const joins = last?.role === message.role && message.role !== "tool" && last.tool_calls === undefined;
    if (joins) result[result.length - 1] = { ...last, ...message, content: `${last.content}\n\n${message.content}` };
    else result.push(message);
  }
  return result[0]?.role === "assistant" ? [{ role: "user", content: "" }, ...result] : result;
}

/**
 * Puts the beginning of the answer behind the prompt: the text that is continued, or, where no thoughts are wanted and
 * the template opens them nevertheless, their end.
 */
function begin(
  text: string,
  request: BackendRequest,
  { prefill }: Conversation,
  { think }: TemplateTraits,
  guard: TextGuard,
): PromptText {
  if (think === undefined) return { text: text + guard.mark(prefill?.text ?? ""), thinkStart: "none" };
  const isOpen = text.trimEnd().endsWith(think.open);
  const end = `\n${think.close}\n\n`;
  if (prefill === undefined) {
    if (!isOpen) return { text, thinkStart: "maybe" };
    return request.reasoning.effort === "none"
      ? { text: `${text.trimEnd()}\n${end}`, thinkStart: "none" }
      : { text, thinkStart: "inside" };
  }
  const thoughts =
    prefill.reasoning === undefined
      ? isOpen
        ? end
        : ""
      : `${isOpen ? "" : `${think.open}\n`}${guard.mark(prefill.reasoning)}${end}`;
  return { text: text + thoughts + guard.mark(prefill.text), thinkStart: "none" };
}
