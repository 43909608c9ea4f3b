import { knownThinkTags, type ThinkTags } from "../../shared/think-tags.ts";
import type { ChatTemplate, TemplateForm, TemplateInput } from "./chat-template.ts";
import type { TemplateMessage, TemplateTool } from "./message.ts";
import { TextGuard } from "./text-guard.ts";
import { detectToolSyntax, type ToolSyntax } from "./tool-syntax.ts";

/** What a template can do, found by rendering small conversations with it. */
export interface TemplateTraits {
  readonly form: TemplateForm;
  /** False: not even one message of a user comes out, so it is the template that is wrong. */
  readonly isUsable: boolean;
  readonly systemRole: boolean;
  /** Absent: tools have to be emulated. */
  readonly toolSyntax?: ToolSyntax;
  /** Whether calls and outputs of the past are written by the template. */
  readonly callHistory: boolean;
  /** Mistral's templates want call ids of nine letters and digits. */
  readonly shortCallIds: boolean;
  readonly think?: ThinkTags;
}

const user: TemplateMessage = { role: "user", content: "probe-user" };
const callId = "probe1234";
const probeTool: TemplateTool = {
  type: "function",
  function: {
    name: "probe_tool",
    description: "probe-description",
    parameters: { type: "object", properties: { probe_key: { type: "string" } }, required: ["probe_key"] },
  },
};
const callMessages: readonly TemplateMessage[] = [
  user,
  {
    role: "assistant",
    content: "",
    tool_calls: [
      { id: callId, type: "function", function: { name: "probe_tool", arguments: '{"probe_key":"probe-value"}' } },
    ],
  },
  { role: "tool", content: "probe-output", tool_call_id: callId, name: "probe_tool" },
  { role: "assistant", content: "probe-answer" },
  user,
];

export function findTraits(template: ChatTemplate): TemplateTraits {
  const content = findContentForm(template);
  const renders = (input: Partial<TemplateInput>, callArguments: "object" | "text" = "object"): string =>
    tryRender(template, { messages: [user], tools: [], ...input }, { content, callArguments });
  const syntax = detectToolSyntax(template.source);
  const showsTools = renders({ tools: [probeTool] }).includes("probe_tool");
  const history = findCallHistory((form) => renders({ messages: callMessages, tools: [probeTool] }, form));
  const think = knownThinkTags.find(
    ({ open, close }) => template.source.includes(open) || template.source.includes(close),
  );
  return {
    isUsable: renders({}).includes(user.content),
    form: { content, callArguments: history ?? "object" },
    systemRole: renders({ messages: [{ role: "system", content: "probe-system" }, user] }).includes("probe-system"),
    callHistory: history !== undefined && syntax !== undefined,
    shortCallIds: /length\s*!=\s*9/.test(template.source),
    ...(syntax !== undefined && showsTools ? { toolSyntax: syntax } : {}),
    ...(think === undefined ? {} : { think }),
  };
}

function findContentForm(template: ChatTemplate): "text" | "parts" {
  const shows = (content: "text" | "parts"): boolean =>
    tryRender(template, { messages: [user], tools: [] }, { content, callArguments: "object" }).includes(user.content);
  return !shows("text") && shows("parts") ? "parts" : "text";
}

/** The form of arguments with which past calls are written as JSON, not as JSON inside a string. */
function findCallHistory(render: (form: "object" | "text") => string): "object" | "text" | undefined {
  return (["object", "text"] as const).find((form) => {
    const text = render(form);
    return /"probe_key"\s*:\s*"probe-value"/.test(text) && text.includes("probe-output");
  });
}

function tryRender(template: ChatTemplate, input: TemplateInput, form: TemplateForm): string {
  try {
    return template.render(input, form, new TextGuard(new Map(), ""));
  } catch {
    // A probe that the template refuses is an answer, too.
    return "";
  }
}
