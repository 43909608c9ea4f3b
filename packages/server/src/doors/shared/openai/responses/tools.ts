import type { FunctionTool } from "@plenum/core";
import { toInvalidRequest } from "../../parse-body.ts";
import { invalid } from "../fields.ts";
import { toFunctionTool } from "../tools.ts";
import { functionToolSchema, type ResponsesBody } from "./schema.ts";

/** Tools that OpenAI's own service runs, and forms that only it knows: coding agents send them everywhere. */
export const hostedTools: ReadonlySet<string> = new Set([
  "apply_patch",
  "code_interpreter",
  "computer",
  "computer_use_preview",
  "custom",
  "file_search",
  "image_generation",
  "local_shell",
  "mcp",
  "namespace",
  "programmatic_tool_calling",
  "shell",
  "tool_search",
  "web_search",
  "web_search_2025_08_26",
  "web_search_preview",
  "web_search_preview_2025_03_11",
]);

export interface ConvertedTools {
  readonly tools: readonly FunctionTool[];
  /** Place of each function in the body's list. */
  readonly indexes: readonly number[];
  /** Names for `X-LMSP-Without-Effect`, such as `tools.web_search`. */
  readonly withoutEffect: readonly string[];
}

/** @throws CoreError invalid-request for what is no tool. */
export function toTools(wire: ResponsesBody["tools"]): ConvertedTools {
  const tools: FunctionTool[] = [];
  const indexes: number[] = [];
  const withoutEffect = new Set<string>();
  for (const [index, tool] of (wire ?? []).entries()) {
    if (tool.type === "function") {
      tools.push(toFunction(tool, index));
      indexes.push(index);
    } else if (hostedTools.has(tool.type)) withoutEffect.add(`tools.${tool.type}`);
    else invalid(`tools[${index}].type`, "it is no kind of tool that is known here; send functions");
  }
  return { tools, indexes, withoutEffect: [...withoutEffect] };
}

function toFunction(tool: unknown, index: number): FunctionTool {
  const parsed = functionToolSchema.safeParse(tool);
  if (parsed.success) return toFunctionTool(parsed.data);
  throw toInvalidRequest(parsed.error.issues.map((issue) => ({ ...issue, path: ["tools", index, ...issue.path] })));
}
