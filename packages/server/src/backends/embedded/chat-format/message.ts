/** Messages as Hugging Face chat templates take them; the snake-case names are theirs. */
export interface TemplateMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly TemplateToolCall[];
  readonly tool_call_id?: string;
  readonly name?: string;
}

export interface TemplateToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: {
    readonly name: string;
    /** JSON text; a template that wants an object gets one. */
    readonly arguments: string;
  };
}

export interface TemplateTool {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: unknown };
}
