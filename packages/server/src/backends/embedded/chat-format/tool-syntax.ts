/** How one family of models writes calls. */
export interface ToolSyntax {
  readonly name: "hermes" | "llama" | "mistral";
  /** Begins a call (or a list of calls). */
  readonly marker: string;
  /** True: the marker may be missing, and a call stands only where the answer begins. */
  readonly markerIsOptional: boolean;
  /** Ends a call. */
  readonly end?: string;
  /** True: after the marker comes a JSON list of calls. */
  readonly isList: boolean;
  /** Name of the member that holds the arguments, as the model writes it. */
  readonly argumentsKey: "arguments" | "parameters";
  /** Calls that one answer may hold. */
  readonly allowsSeveral: boolean;
}

/** `<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen, and what is emulated. */
export const hermesSyntax: ToolSyntax = {
  name: "hermes",
  marker: "<tool_call>",
  markerIsOptional: false,
  end: "</tool_call>",
  isList: false,
  argumentsKey: "arguments",
  allowsSeveral: true,
};

/** `{"name": …, "parameters": …}`, maybe behind `<|python_tag|>`: Llama 3. */
const llamaSyntax: ToolSyntax = {
  name: "llama",
  marker: "<|python_tag|>",
  markerIsOptional: true,
  isList: false,
  argumentsKey: "parameters",
  allowsSeveral: false,
};

/** `[TOOL_CALLS][{"name": …, "arguments": …}, …]`: Mistral. */
const mistralSyntax: ToolSyntax = {
  name: "mistral",
  marker: "[TOOL_CALLS]",
  markerIsOptional: false,
  isList: true,
  argumentsKey: "arguments",
  allowsSeveral: true,
};

/** The syntax that a template's own text shows. Undefined: one that is not known here. */
export function detectToolSyntax(template: string): ToolSyntax | undefined {
  // Newer Mistral templates write `[TOOL_CALLS]name[ARGS]{…}`, and Qwen3-Coder's calls are XML inside <tool_call>.
  if (template.includes("[ARGS]") || template.includes("<function=")) return undefined;
  if (template.includes(mistralSyntax.marker)) return mistralSyntax;
  // GLM writes <arg_key> inside <tool_call>.
  if (template.includes(hermesSyntax.marker)) return template.includes("<arg_key>") ? undefined : hermesSyntax;
  const isLlama = template.includes("<|python_tag|>") || /["']?parameters["']?\s*:/.test(template);
  return isLlama && template.includes("<|eot_id|>") ? llamaSyntax : undefined;
}
