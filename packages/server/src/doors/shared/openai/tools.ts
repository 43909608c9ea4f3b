import type { Catalog, FunctionTool, ToolChoice } from "@plenum/core";
import { z } from "zod";
import { compact } from "../compact.ts";
import type { ConvertedRequest } from "./converted.ts";

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

/** Tools that the model may use and can't call are without effect; required and named ones are refused by the core. */
export function leaveOutUncallableTools<T extends ConvertedRequest>(converted: T, catalog: Catalog): T {
  const { request, withoutEffect } = converted;
  if (request.tools.length === 0 || request.toolChoice !== "auto") return converted;
  const found = catalog.find(request.model);
  if (found === undefined || found.model.capabilities.tools) return converted;
  return { ...converted, request: { ...request, tools: [] }, withoutEffect: [...withoutEffect, "tools"] };
}
