import {
  type EmbeddingRequest,
  type FunctionTool,
  type InputItem,
  makeRequest,
  type OutputFormat,
  type ResponseInput,
  type ResponseRequest,
  requestDefaults,
  type ToolChoice,
} from "@plenum/core";
import { compact } from "../shared/compact.ts";
import type { HeaderFields } from "../shared/request-headers.ts";
import { defaults } from "./defaults.ts";
import { toKeepAliveMs } from "./keep-alive.ts";
import { toItems, toParts } from "./messages.ts";
import { readOptions } from "./options.ts";
import { OllamaRefusal, refuseField } from "./refusal.ts";
import { nameOf, type WireChat, type WireEmbed, type WireGenerate } from "./schema.ts";

/** A request in the core's words, with what the client should know about its own. */
export interface Converted {
  readonly request: ResponseRequest;
  /** Fields taken without effect, in the client's spelling. */
  readonly withoutEffect: readonly string[];
}

/** @throws CoreError invalid-request, OllamaRefusal */
export function toChatRequest(wire: WireChat, headers: HeaderFields): Converted {
  const { request, ...rest } = convert(wire, headers, { kind: "items", items: toItems(wire.messages ?? []) });
  return { ...rest, request: { ...request, tools: toTools(wire.tools), toolChoice: toToolChoice(wire.tool_choice) } };
}

/** @throws CoreError invalid-request, OllamaRefusal */
export function toGenerateRequest(wire: WireGenerate, headers: HeaderFields): Converted {
  const { request, withoutEffect } = convert(wire, headers, toGenerateInput(wire));
  // As in Ollama: the template for filling in the middle has no place for a system text.
  const unused = wire.suffix && !wire.raw && wire.system ? ["system"] : [];
  return { request, withoutEffect: [...withoutEffect, ...unused] };
}

/** @throws OllamaRefusal */
export function toEmbeddingRequest(wire: WireEmbed, inputs: readonly string[], headers: HeaderFields) {
  readOptions(wire.options);
  const { priority, deadlineMs, trace } = headers;
  const dimensions = (wire.dimensions ?? 0) > 0 ? wire.dimensions : undefined;
  const request: EmbeddingRequest = {
    model: nameOf(wire),
    inputs,
    truncate: wire.truncate ?? defaults.truncateEmbeddings,
    priority: priority ?? requestDefaults.priority,
    runtimeOptions: requestDefaults.runtimeOptions,
    ...compact({ dimensions, deadlineMs, trace, keepAliveMs: toKeepAliveMs(wire.keep_alive) }),
  };
  const set = Object.entries(wire.options ?? {}).filter(([, value]) => value !== null);
  return { request, withoutEffect: set.map(([name]) => `options.${name}`) };
}

/** @throws OllamaRefusal */
export function toEmbeddingInputs(input: unknown): readonly string[] {
  if (input === undefined || input === null || input === "") return [];
  const inputs: unknown[] = Array.isArray(input) ? input : [input];
  return inputs.map((entry) => {
    if (typeof entry !== "string") throw new OllamaRefusal(400, "invalid input type");
    return entry;
  });
}

function convert(wire: WireChat | WireGenerate, headers: HeaderFields, input: ResponseInput): Converted {
  const options = readOptions(wire.options);
  const isLogging = wire.logprobs === true;
  const ignored = {
    // A full context ends the answer with `length`; nothing is shifted out of it.
    shift: wire.shift === true,
    top_logprobs: !isLogging && Boolean(wire.top_logprobs),
  };
  const request = makeRequest({
    model: nameOf(wire),
    input,
    output: { format: toFormat(wire.format), ...compact({ maxTokens: options.maxTokens }) },
    samplingDefaults: defaults.sampling,
    sampling: { ...options.sampling, ...(isLogging ? { logprobs: wire.top_logprobs ?? 0 } : {}) },
    reasoning: compact({ effort: toEffort(wire.think) }),
    truncation: wire.truncate === true ? "oldest" : "none",
    keepAliveMs: toKeepAliveMs(wire.keep_alive),
    ...headers,
  });
  const names = Object.entries(ignored).flatMap(([name, isIgnored]) => (isIgnored ? [name] : []));
  return { request, withoutEffect: [...options.withoutEffect, ...names] };
}

/** A prompt with Ollama's template around it is a conversation of one turn; `raw` and `suffix` are completions. */
function toGenerateInput(wire: WireGenerate): ResponseInput {
  const prompt = wire.prompt ?? "";
  const images = wire.images ?? [];
  const hasContext = Boolean(wire.context?.length);
  if (wire.raw && (wire.template || wire.system || hasContext)) {
    throw new OllamaRefusal(400, "raw mode does not support template, system, or context");
  }
  if (wire.template) refuseField("template", "can't be set for a request here; leave it out, or send a raw prompt.");
  if (hasContext) refuseField("context", "can't continue an answer here; send the conversation to /api/chat.");
  if (wire.raw || wire.suffix) {
    if (images.length > 0) refuseField("images", "can't be part of a raw prompt or one with a suffix.");
    return { kind: "completion", prompt, raw: wire.raw === true, ...(wire.suffix ? { suffix: wire.suffix } : {}) };
  }
  const items: InputItem[] = [];
  if (wire.system) items.push({ type: "message", role: "system", content: toParts(wire.system, []) });
  items.push({ type: "message", role: "user", content: toParts(prompt, images) });
  return { kind: "items", items };
}

function toTools(tools: WireChat["tools"]): FunctionTool[] {
  return (tools ?? []).map(({ function: { name, description, parameters } }) => ({
    name,
    ...compact({ description, parameters }),
  }));
}

function toToolChoice(choice: WireChat["tool_choice"]): ToolChoice {
  if (choice === undefined || choice === null) return requestDefaults.toolChoice;
  if (typeof choice === "string") return choice;
  return { name: "function" in choice ? choice.function.name : choice.name };
}

/** `""`, `"json"`, a schema, or a schema as its JSON text. */
function toFormat(format: unknown): OutputFormat {
  if (format === undefined || format === null || format === "") return { type: "text" };
  if (format === "json") return { type: "json" };
  const schema = typeof format === "string" ? parsed(format) : format;
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) {
    return { type: "json_schema", schema: { ...schema }, strict: true };
  }
  const quoted = JSON.stringify(JSON.stringify(format));
  throw new OllamaRefusal(500, `invalid format: ${quoted}; expected "json" or a valid JSON Schema object`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not JSON: the caller refuses it by name.
    return undefined;
  }
}

function toEffort(think: unknown): ResponseRequest["reasoning"]["effort"] {
  switch (think) {
    case undefined:
    case null:
      return undefined;
    case true:
      return defaults.thinkEffort;
    case false:
      return "none";
    case "low":
    case "medium":
    case "high":
      return think;
    default: {
      const quoted = JSON.stringify(think);
      throw new OllamaRefusal(400, `invalid think value: ${quoted} (must be "high", "medium", "low", true, or false)`);
    }
  }
}
