import type { FunctionTool, ToolChoice } from "@plenum/core";
import { z } from "zod";
import { compact } from "../compact.ts";

export const jsonSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())], "must be a JSON Schema");

/** A function as chat nests it and Responses spreads it. */
export const functionShape = {
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: jsonSchema.nullish(),
  strict: z.boolean().nullish(),
};

export function toFunctionTool(tool: z.output<z.ZodObject<typeof functionShape>>): FunctionTool {
  const { name, description, parameters, strict } = tool;
  return { name, ...compact({ description, parameters, strict }) };
}

/** Without tools, `auto` and `none` mean the same; strict runtimes refuse a choice among no tools. */
export function choiceAmong(tools: readonly FunctionTool[], choice: ToolChoice): ToolChoice {
  return tools.length === 0 && choice === "none" ? "auto" : choice;
}
