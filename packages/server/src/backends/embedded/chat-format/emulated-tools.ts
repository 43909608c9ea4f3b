import type { FunctionTool, ToolChoice } from "@plenum/core";
import { hermesSyntax } from "./tool-syntax.ts";

/** What tells a model without tools of its own about them; calls are then made in Hermes' form. */
export function toolsText(tools: readonly FunctionTool[], choice: ToolChoice): string {
  const listed = tools.map((tool) => JSON.stringify(describeTool(tool)));
  const must = choice === "required" || typeof choice === "object";
  return [
    "You can call functions. These are the functions, each with the JSON schema of its arguments:",
    "<tools>",
    ...listed,
    "</tools>",
    `${must ? "You must call a function now" : "To call a function, answer with its name and arguments as JSON"}, in this form:`,
    hermesSyntax.marker,
    '{"name": "function name", "arguments": {"argument name": "argument value"}}',
    hermesSyntax.end,
  ].join("\n");
}

/** A tool as chat templates know it. Templates read the description and parameters without asking whether they are there. */
export function describeTool(tool: FunctionTool): { name: string; description: string; parameters: unknown } {
  return {
    name: tool.name,
    description: tool.description ?? "",
    parameters: tool.parameters ?? { type: "object", properties: {} },
  };
}

/** A past call as the model would have written it. */
export function callText(name: string, argumentsText: string): string {
  return `${hermesSyntax.marker}\n{"name": ${JSON.stringify(name)}, "arguments": ${argumentsText}}\n${hermesSyntax.end}`;
}

/** What a function gave back. */
export function outputText(output: string): string {
  return `<tool_response>\n${output}\n</tool_response>`;
}
