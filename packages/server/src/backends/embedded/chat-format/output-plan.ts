import { type BackendRequest, CoreError, type FunctionTool } from "@plenum/core";
import type { ThinkStart, ThinkTags } from "../../shared/think-tags.ts";
import {
  addAnyObject,
  addSchema,
  characters,
  choice,
  type Expression,
  GrammarBuilder,
  grammarText,
  optional,
  repeat,
  sequence,
  text,
  textUntil,
} from "../grammar/index.ts";
import { hasTools } from "./render-prompt.ts";
import type { ToolSyntax } from "./tool-syntax.ts";

/** Calls that one forced answer may hold; without a bound a small model calls for ever. */
const maxForcedCalls = 8;

/** Whether the answer has to be a call. */
export function isForced(request: BackendRequest): boolean {
  return hasTools(request) && (request.toolChoice === "required" || typeof request.toolChoice === "object");
}

/** Whether the answer has to be JSON (or, where tools are there, a call). */
export function wantsJson(request: BackendRequest): boolean {
  return request.output.format.type !== "text" && !isForced(request);
}

/** @throws CoreError invalid-request for a choice of tools that can't be made */
export function requireToolChoice({ toolChoice, tools }: BackendRequest): void {
  if (toolChoice === "required" && tools.length === 0) {
    throw new CoreError("invalid-request", "A tool is required, but the request has no tools.", {
      param: "toolChoice",
    });
  }
  if (typeof toolChoice === "object" && !tools.some((tool) => tool.name === toolChoice.name)) {
    const detail = `toolChoice names "${toolChoice.name}", which is none of the request's tools.`;
    throw new CoreError("invalid-request", detail, { param: "toolChoice" });
  }
}

export interface OutputForm {
  readonly syntax: ToolSyntax;
  readonly think: ThinkTags | undefined;
  readonly thinkStart: ThinkStart;
}

/**
 * The grammar of the answer; undefined for free text. A forced call outweighs an output format. With JSON and tools
 * left to the model, the answer is either JSON or calls. Thoughts, where the model has them, may come first.
 * @throws CoreError invalid-request for schemas that can't be held
 */
export function outputGrammar(request: BackendRequest, form: OutputForm): string | undefined {
  const forced = isForced(request);
  if (!forced && !wantsJson(request)) return undefined;
  const builder = new GrammarBuilder();
  const options: Expression[] = forced ? [] : [jsonRoot(builder, request)];
  if (hasTools(request)) options.push(calls(builder, request, form.syntax, forced));
  const answer = choice(...options);
  const root = withThoughts(builder, answer, form);
  return grammarText(builder, root, forced ? "tools" : "output.format.schema");
}

function jsonRoot(builder: GrammarBuilder, { output: { format } }: BackendRequest): Expression {
  if (format.type !== "json_schema") return addAnyObject(builder);
  return addSchema(builder, format.schema, "output.format.schema");
}

function calls(builder: GrammarBuilder, request: BackendRequest, syntax: ToolSyntax, forced: boolean): Expression {
  const { tools, toolChoice, parallelToolCalls } = request;
  const wanted = [...tools.entries()].filter(
    ([, tool]) => typeof toolChoice !== "object" || toolChoice.name === tool.name,
  );
  const call = builder.rule(
    choice(
      ...wanted.map(([index, tool]) => {
        const head = `{"name": ${JSON.stringify(tool.name)}, "${syntax.argumentsKey}": `;
        return sequence(text(head), argumentsOf(builder, tool, index, forced), text("}"));
      }),
    ),
  );
  const most = !parallelToolCalls || typeof toolChoice === "object" || !syntax.allowsSeveral ? 1 : maxForcedCalls;
  const several = (one: Expression, between: string): Expression =>
    most === 1 ? one : sequence(one, repeat(builder.rule(sequence(text(between), one)), 0, most - 1));
  switch (syntax.name) {
    case "hermes":
      return several(builder.rule(sequence(text("<tool_call>\n"), call, text("\n</tool_call>"))), "\n");
    case "mistral":
      return sequence(text("[TOOL_CALLS]"), optional(text(" ")), text("["), several(call, ", "), text("]"));
    case "llama":
      return call;
  }
}

/** Arguments by the tool's schema. Where no call is forced, a schema that can't be held allows any object. */
function argumentsOf(builder: GrammarBuilder, tool: FunctionTool, index: number, forced: boolean): Expression {
  const { parameters } = tool;
  if (parameters === undefined || parameters === true) return addAnyObject(builder);
  const param = `tools[${index}].parameters`;
  try {
    if (parameters === false) return addSchema(builder, false, param);
    const { type } = parameters;
    if (type !== undefined && type !== "object") {
      throw new CoreError("invalid-request", `The parameters of tool "${tool.name}" have to be of type object.`, {
        param,
      });
    }
    return addSchema(builder, { ...parameters, type: "object" }, param);
  } catch (error) {
    if (forced || !(error instanceof CoreError)) throw error;
    return addAnyObject(builder);
  }
}

function withThoughts(builder: GrammarBuilder, answer: Expression, { think, thinkStart }: OutputForm): Expression {
  if (think === undefined || thinkStart === "none") return answer;
  const rest = sequence(textUntil(builder, think.close), repeat(characters([[0x0a, 0x0a]]), 0, 2));
  return thinkStart === "inside"
    ? sequence(rest, answer)
    : sequence(optional(sequence(text(think.open), rest)), answer);
}
