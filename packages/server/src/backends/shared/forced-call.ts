/**
 * A call that must be made, of a server that can't force one but holds an answer to a schema: the schema is that of the
 * call, the tools are told in a system text, and the answer is read as the call.
 */
import {
  type BackendEvent,
  type BackendRequest,
  type BackendSink,
  CoreError,
  type FunctionTool,
  type JsonSchema,
} from "@plenum/core";
import { parseExact, writeExact } from "./exact-json.ts";

/** UTF-16 units of a call that a schema holds. */
const mostCharacters = 4 * 1024 * 1024;

/** What goes to the server in a request's place, and what reads its answer. */
export interface ForcedCallRequest {
  readonly request: BackendRequest;
  /** Makes the sink of one answer: its texts become the call, then it goes to this sink. Throws CoreError invalid-output. */
  readonly sinkBefore: (sink: BackendSink) => BackendSink;
}

/**
 * Undefined: no call must be made.
 * @throws CoreError invalid-request for a schema that refers to anything but its own definitions
 */
export function forcedCall(request: BackendRequest): ForcedCallRequest | undefined {
  const tools = forcedTools(request);
  if (tools === undefined || request.input.kind !== "items") return undefined;
  const instructions = [request.instructions ?? "", forcedCallText(tools)].filter((text) => text !== "").join("\n\n");
  const format = { type: "json_schema", name: "call", schema: forcedCallSchema(tools), strict: true } as const;
  return {
    request: { ...request, instructions, tools: [], toolChoice: "auto", output: { ...request.output, format } },
    sinkBefore: (sink) => {
      const reader = new ForcedCallReader(tools, sink);
      return (events) => reader.push(events);
    },
  };
}

/** The tools one of which must be called now; undefined: none must. */
function forcedTools({ tools, toolChoice }: BackendRequest): readonly FunctionTool[] | undefined {
  if (toolChoice === "auto" || toolChoice === "none") return undefined;
  return toolChoice === "required" ? tools : tools.filter(({ name }) => name === toolChoice.name);
}

/** What the model is told. Each tool stands on a line of its own. */
function forcedCallText(tools: readonly FunctionTool[]): string {
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
function forcedCallSchema(tools: readonly FunctionTool[]): SchemaObject {
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
  const detail = `A call of '${tool}' can't be forced: its schema refers to ${reference}.`;
  throw new CoreError("invalid-request", detail, { param: "tools" });
}

function isObject(value: unknown): value is SchemaObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface ForcedCall {
  readonly name: string;
  /** JSON text of the object. */
  readonly arguments: string;
}

/** Reads an answer that the schema held. Undefined: it is cut off, or no call of these tools. */
function readForcedCall(text: string, tools: readonly FunctionTool[]): ForcedCall | undefined {
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

/** Texts of an answer to the call that they write. Calls that the server makes by itself count as well. */
class ForcedCallReader {
  readonly #tools: readonly FunctionTool[];
  readonly #sink: BackendSink;
  readonly #texts = new Map<number, string>();
  readonly #called = new Set<number>();

  constructor(tools: readonly FunctionTool[], sink: BackendSink) {
    this.#tools = tools;
    this.#sink = sink;
  }

  push(events: readonly BackendEvent[]): void {
    const given: BackendEvent[] = [];
    for (const event of events) this.#take(event, given);
    if (given.length > 0) this.#sink(given);
  }

  #take(event: BackendEvent, given: BackendEvent[]): void {
    if (event.type === "text") {
      const text = (this.#texts.get(event.candidate) ?? "") + event.delta;
      if (text.length > mostCharacters) {
        const detail = `The runtime's call is longer than ${mostCharacters} characters.`;
        throw new CoreError("backend-error", detail, { limit: mostCharacters });
      }
      this.#texts.set(event.candidate, text);
      return;
    }
    if (event.type === "function_call") this.#called.add(event.candidate);
    given.push(event.type === "finish" ? this.#finish(event, given) : event);
  }

  #finish(event: FinishEvent, given: BackendEvent[]): FinishEvent {
    const { candidate } = event;
    if (this.#called.has(candidate)) return event;
    const call = readForcedCall(this.#texts.get(candidate) ?? "", this.#tools);
    if (call === undefined) {
      if (event.finishReason === "length") return event;
      throw new CoreError("invalid-output", "The model did not make the call that was asked for.");
    }
    const place = { candidate, call: 0 };
    given.push({ type: "function_call", ...place, name: call.name });
    given.push({ type: "function_call_arguments", ...place, delta: call.arguments });
    return { ...event, finishReason: "tool_calls" };
  }
}

type FinishEvent = Extract<BackendEvent, { readonly type: "finish" }>;
