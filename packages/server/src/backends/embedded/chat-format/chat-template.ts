import { Template } from "@huggingface/jinja";
import { CoreError } from "@plenum/core";
import { parseArguments } from "./call-arguments.ts";
import type { TemplateMessage, TemplateTool } from "./message.ts";
import type { TextGuard } from "./text-guard.ts";

/** For models whose file has no template. */
export const chatmlTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** How a template wants what it is given. */
export interface TemplateForm {
  /** `parts`: message contents as a list of `{type: "text", text}`. */
  readonly content: "text" | "parts";
  /** `object`: call arguments as an object; `text`: as JSON text. */
  readonly callArguments: "object" | "text";
}

export interface TemplateInput {
  readonly messages: readonly TemplateMessage[];
  readonly tools: readonly TemplateTool[];
  /** Absent: the template's own default. */
  readonly enableThinking?: boolean;
  readonly reasoningEffort?: string;
}

/** A template that stopped: its own complaint, or something it can't do here. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}

export interface TemplateTokens {
  readonly bosToken?: string;
  readonly eosToken?: string;
}

/** A model's Jinja chat template. */
export class ChatTemplate {
  readonly source: string;
  readonly #template: Template;
  readonly #tokens: TemplateTokens;

  /** @throws CoreError backend-error when the template can't be read */
  constructor(source: string, tokens: TemplateTokens) {
    this.source = source;
    this.#tokens = tokens;
    try {
      this.#template = new Template(source);
    } catch (error) {
      const reason = error instanceof Error ? error.message : "unknown";
      throw new CoreError(
        "backend-error",
        `The model's chat template can't be read (${reason}).`,
        {},
        { cause: error },
      );
    }
  }

  /** The prompt up to where the answer begins. @throws TemplateError */
  render(input: TemplateInput, form: TemplateForm, guard: TextGuard): string {
    const tools = input.tools.map((tool) => guard.protect(tool));
    try {
      return this.#template.render({
        messages: input.messages.map((message) => messageOf(message, form, guard)),
        // Templates ask for `tools is not none` as well as for `tools`.
        tools: tools.length === 0 ? null : tools,
        add_generation_prompt: true,
        bos_token: this.#tokens.bosToken ?? "",
        eos_token: this.#tokens.eosToken ?? "",
        ...(input.enableThinking === undefined
          ? {}
          : { enable_thinking: input.enableThinking, thinking: input.enableThinking }),
        ...(input.reasoningEffort === undefined ? {} : { reasoning_effort: input.reasoningEffort }),
      });
    } catch (error) {
      throw new TemplateError(guard.unmarked(error instanceof Error ? error.message : "unknown"), { cause: error });
    }
  }
}

function messageOf(message: TemplateMessage, form: TemplateForm, guard: TextGuard): Record<string, unknown> {
  const { content, tool_calls: calls, ...rest } = message;
  const text = guard.mark(content);
  return {
    ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, guard.mark(value)])),
    content: form.content === "text" ? text : [{ type: "text", text }],
    ...(calls === undefined
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: guard.mark(call.id),
            type: "function",
            function: {
              name: guard.mark(call.function.name),
              arguments: argumentsOf(call.function.arguments, form, guard),
            },
          })),
        }),
  };
}

function argumentsOf(text: string, form: TemplateForm, guard: TextGuard): unknown {
  if (form.callArguments === "text") return guard.mark(text);
  const parsed = parseArguments(text, (raw) => guard.number(raw));
  return parsed === undefined ? guard.mark(text) : guard.protect(parsed);
}
