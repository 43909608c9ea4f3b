import type { BackendRequest } from "@plenum/core";
import type { ThinkStart } from "../../shared/think-tags.ts";
import type { ChatFormat, ChatFormatOptions, OutputParser, RenderedPrompt } from "./chat-format.ts";
import { ChatTemplate, chatmlTemplate } from "./chat-template.ts";
import { createParser } from "./output-parser.ts";
import { isForced, type OutputForm, outputGrammar, requireToolChoice } from "./output-plan.ts";
import { hasTools, renderPrompt } from "./render-prompt.ts";
import { findTraits, type TemplateTraits } from "./template-traits.ts";
import { groupTokens, TextGuard } from "./text-guard.ts";
import { hermesSyntax, type ToolSyntax } from "./tool-syntax.ts";

/** Names of the turns that ChatML's fallback ends with, for models whose vocabulary does not have them as tokens. */
const chatmlStops: readonly string[] = ["<|im_end|>", "<|im_start|>"];

/** A model's format as its chat template gives it. */
export class TemplateChatFormat implements ChatFormat {
  readonly capabilities: ChatFormat["capabilities"];
  readonly visibleTokens: readonly string[];
  readonly #template: ChatTemplate;
  readonly #traits: TemplateTraits;
  readonly #syntax: ToolSyntax;
  readonly #tokens: ReadonlyMap<string, readonly string[]>;
  readonly #stop: readonly string[];
  /** Known from `render`, so that a parser does not render the prompt again. */
  readonly #thinkStarts = new WeakMap<BackendRequest, ThinkStart>();

  /** @throws CoreError backend-error when the template can't be read */
  constructor({ template, bosToken, eosToken, specialTokens }: ChatFormatOptions) {
    this.#template = new ChatTemplate(template ?? chatmlTemplate, {
      ...(bosToken === undefined ? {} : { bosToken }),
      ...(eosToken === undefined ? {} : { eosToken }),
    });
    this.#stop = template === undefined ? chatmlStops : [];
    this.#tokens = groupTokens(specialTokens);
    const traits = findTraits(this.#template);
    this.#traits = traits;
    this.#syntax = traits.toolSyntax ?? hermesSyntax;
    this.capabilities = {
      tools: true,
      toolsEmulated: traits.toolSyntax === undefined,
      reasoning: traits.think !== undefined,
      systemRole: traits.systemRole,
    };
    const read = [this.#syntax.marker, this.#syntax.end, traits.think?.open, traits.think?.close];
    this.visibleTokens = specialTokens.filter((token) => read.includes(token));
  }

  render(request: BackendRequest): RenderedPrompt {
    requireToolChoice(request);
    const { guard, text, thinkStart } = this.#prompt(request);
    this.#thinkStarts.set(request, thinkStart);
    const grammar = outputGrammar(request, this.#form(thinkStart));
    return {
      pieces: guard.pieces(text),
      stop: [...this.#stop, ...this.#endOfOnlyCall(request)],
      ...(grammar === undefined ? {} : { grammar }),
    };
  }

  createOutputParser(request: BackendRequest, candidate: number): OutputParser {
    const thinkStart = this.#thinkStarts.get(request) ?? this.#thinkStartOf(request);
    return createParser(request, candidate, this.#form(thinkStart));
  }

  #thinkStartOf(request: BackendRequest): ThinkStart {
    const { thinkStart } = this.#prompt(request);
    this.#thinkStarts.set(request, thinkStart);
    return thinkStart;
  }

  #prompt(request: BackendRequest): {
    readonly guard: TextGuard;
    readonly text: string;
    readonly thinkStart: ThinkStart;
  } {
    const { input, instructions, tools } = request;
    const guard = new TextGuard(this.#tokens, JSON.stringify({ input, instructions, tools }));
    // A raw prompt goes to the model as it is; that it may hold control tokens is its purpose.
    if (input.kind === "completion" && input.raw) return { guard, text: input.prompt, thinkStart: "none" };
    return { guard, ...renderPrompt(request, this.#template, this.#traits, guard) };
  }

  #form(thinkStart: ThinkStart): OutputForm {
    return { syntax: this.#syntax, think: this.#traits.think, thinkStart };
  }

  /** With one call allowed, its end is the answer's end. A forced call ends by its grammar. */
  #endOfOnlyCall(request: BackendRequest): readonly string[] {
    const isOnly = hasTools(request) && !request.parallelToolCalls && !isForced(request);
    return isOnly && this.#syntax.end !== undefined ? [this.#syntax.end] : [];
  }
}
