/**
 * A call that must be made. Ollama takes no tool choice, but holds an answer to a schema: the schema is that of the
 * call, the tools are told in a system text, and the answer is read as the call.
 */
import type { BackendRequest, FunctionTool, JsonSchema } from "@plenum/core";
import { parseExact, writeExact } from "../shared/exact-json.ts";
import { invalid } from "./errors.ts";

/** The tools one of which must be called now; undefined: none must. */
export function forcedTools({ tools, toolChoice }: BackendRequest): readonly FunctionTool[] | undefined {
  if (toolChoice === "auto" || toolChoice === "none") return undefined;
  return toolChoice === "required" ? tools : tools.filter(({ name }) => name === toolChoice.name);
}

/** What the model is told. Each tool stands on a line of its own. */
export function forcedCallText(tools: readonly FunctionTool[]): string {
  const listed = tools.map(({ name, description, parameters }) => JSON.stringify({ name, description, parameters }));
  return [
    tools.length === 1 ? "Call this function now:" : "Call one of these functions now:",
    ...listed,
    'Answer with JSON alone: {"name": "function name", "arguments": {"argument name": "argument value"}}',
  ].join("\n");
}

/**
 * Schema of a call of one of the tools. Definitions of their schemas move to its root, where references find them.
 * @throws CoreError invalid-request for a schema that refers to anything but its own definitions
 */
export function forcedCallSchema(tools: readonly FunctionTool[]): Readonly<Record<string, unknown>> {
  const definitions: Record<string, unknown> = {};
  const calls = tools.map((tool, index) => callSchema(tool, `tool${index}_`, definitions));
  const [first] = calls;
  const root = calls.length === 1 && first !== undefined ? first : { anyOf: calls };
  return Object.keys(definitions).length === 0 ? root : { ...root, $defs: definitions };
}

type SchemaObject = Readonly<Record<string, unknown>>;

function callSchema(tool: FunctionTool, prefix: string, definitions: Record<string, unknown>): SchemaObject {
  const move = (schema: unknown): unknown => withMovedReferences(schema, prefix, tool.name);
  const { $defs, definitions: older, $schema: _, ...own } = objectSchema(tool.parameters);
  for (const found of [$defs, older]) {
    if (!isObject(found)) continue;
    for (const [name, schema] of Object.entries(found)) definitions[`${prefix}${name}`] = move(schema);
  }
  return {
    type: "object",
    properties: { name: { type: "string", const: tool.name }, arguments: move(own) },
    required: ["name", "arguments"],
    additionalProperties: false,
  };
}

function objectSchema(parameters: JsonSchema | undefined): SchemaObject {
  return typeof parameters === "object" ? { type: "object", ...parameters } : { type: "object" };
}

function withMovedReferences(schema: unknown, prefix: string, tool: string): unknown {
  if (Array.isArray(schema)) return schema.map((entry) => withMovedReferences(entry, prefix, tool));
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).map(([key, value]) => {
    if (key === "$ref" && typeof value === "string") return [key, movedReference(value, prefix, tool)] as const;
    return [key, withMovedReferences(value, prefix, tool)] as const;
  });
  return Object.fromEntries(entries);
}

function movedReference(reference: string, prefix: string, tool: string): string {
  const [, name] = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec(reference) ?? [];
  if (name !== undefined) return `#/$defs/${prefix}${name}`;
  throw invalid(`A call of '${tool}' can't be forced: its schema refers to ${reference}.`, "tools");
}

function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface ForcedCall {
  readonly name: string;
  /** JSON text of the object. */
  readonly arguments: string;
}

/** Reads an answer that the schema held. Undefined: it is cut off, or no call of these tools. */
export function readForcedCall(text: string, tools: readonly FunctionTool[]): ForcedCall | undefined {
  const form = /^\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*(\{[\s\S]*\})\s*\}\s*$/;
  const [, name, written] = form.exec(text) ?? [];
  if (name === undefined || written === undefined || !tools.some((tool) => tool.name === name)) return undefined;
  try {
    return { name, arguments: writeExact(parseExact(written)) };
  } catch {
    // Not whole, although its last characters look so.
    return undefined;
  }
}
