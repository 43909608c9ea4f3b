import type { BackendModel, BackendRequest, FunctionTool, Sampling } from "@plenum/core";
import type { Dialect } from "./dialects.ts";
import { chatMessages } from "./messages.ts";

/** An upstream call: a path below the base URL and its body. */
export interface UpstreamBody {
  readonly path: "/v1/chat/completions" | "/v1/completions";
  readonly body: Readonly<Record<string, unknown>>;
}

/** True: the answer is asked for in one piece. */
export function isWhole({ delivery }: BackendRequest, { stopsWhole }: Dialect): boolean {
  return delivery === "whole" && stopsWhole;
}

/** A core request in the server's words. */
export function upstreamBody(
  request: BackendRequest,
  model: BackendModel,
  kind: string,
  dialect: Dialect,
): UpstreamBody {
  const { input } = request;
  const isPlain = input.kind === "completion" && (input.raw || Boolean(input.suffix));
  const shared = {
    ...request.runtimeOptions[kind],
    model: model.name,
    ...samplingFields(request.sampling, dialect),
    ...maxTokensField(request, model, dialect, isPlain),
    ...(request.candidates > 1 ? { n: request.candidates } : {}),
    ...(dialect.priority && request.priority !== 0 ? { priority: -request.priority } : {}),
    ...formatField(request, dialect),
    ...streamFields(request, dialect),
  };
  if (isPlain && input.kind === "completion") {
    const { logprobs } = request.sampling;
    const body = {
      ...shared,
      prompt: input.prompt,
      ...(input.suffix ? { suffix: input.suffix } : {}),
      ...(logprobs === undefined ? {} : { logprobs }),
    };
    return { path: "/v1/completions", body };
  }
  const body = {
    ...shared,
    messages: chatMessages(request, dialect.pastReasoning),
    ...toolFields(request, dialect),
    ...reasoningFields(request, dialect),
    ...logprobFields(request.sampling),
  };
  return { path: "/v1/chat/completions", body };
}

function streamFields(request: BackendRequest, dialect: Dialect): object {
  if (isWhole(request, dialect)) return { stream: false };
  return dialect.asksForUsage ? { stream: true, stream_options: { include_usage: true } } : { stream: true };
}

function samplingFields(sampling: Sampling, dialect: Dialect): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const { seedLimit: limit } = dialect;
  const spellings: Readonly<Record<string, string>> = dialect.sampling;
  for (const [name, value] of Object.entries(sampling)) {
    const spelling = Object.hasOwn(spellings, name) ? spellings[name] : undefined;
    if (spelling === undefined || value === undefined) continue;
    const isSeed = name === "seed" && typeof value === "number" && limit !== undefined;
    fields[spelling] = isSeed ? ((value % limit) + limit) % limit : value;
  }
  return fields;
}

/** A bound that the context can't hold is left out: servers refuse it, and the context bounds the answer anyway. */
function maxTokensField(
  { output: { maxTokens } }: BackendRequest,
  { limits }: BackendModel,
  dialect: Dialect,
  isPlain: boolean,
): object {
  if (maxTokens === undefined || maxTokens >= (limits.contextTokens ?? Number.POSITIVE_INFINITY)) return {};
  return { [isPlain ? "max_tokens" : dialect.maxTokens]: maxTokens };
}

/** The same body without its bound of tokens. */
export function withoutMaxTokens({ path, body }: UpstreamBody): UpstreamBody {
  const { max_tokens: _short, max_completion_tokens: _long, ...rest } = body;
  return { path, body: rest };
}

function formatField({ output: { format } }: BackendRequest, dialect: Dialect): object {
  if (format.type === "text") return {};
  if (format.type === "json" && dialect.jsonObject) return { response_format: { type: "json_object" } };
  const asked = format.type === "json" ? { schema: { type: "object" }, strict: true } : format;
  const { schema, strict } = asked;
  const name = format.type === "json" ? undefined : format.name;
  return {
    response_format: {
      type: "json_schema",
      json_schema: { name: name ?? "answer", schema: schema === true ? {} : schema, strict },
    },
  };
}

function toolFields(request: BackendRequest, dialect: Dialect): object {
  const { tools, toolChoice, parallelToolCalls } = request;
  // Without tools there can be no call: `none` holds on every server.
  if (tools.length === 0 || toolChoice === "none") return {};
  const isForced = toolChoice !== "auto";
  const choice =
    typeof toolChoice === "object" ? { type: "function", function: { name: toolChoice.name } } : toolChoice;
  return {
    tools: tools.map((tool) => toolField(tool, isForced && dialect.strictForcedCalls)),
    ...(isForced ? { tool_choice: choice } : {}),
    ...(dialect.tellsParallelCalls || !parallelToolCalls ? { parallel_tool_calls: parallelToolCalls } : {}),
  };
}

function toolField({ name, description, parameters, strict }: FunctionTool, isStrict: boolean): object {
  const schema = typeof parameters === "object" ? parameters : { type: "object", properties: {} };
  const held = strict ?? (isStrict ? true : undefined);
  return {
    type: "function",
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: schema,
      ...(held === undefined ? {} : { strict: held }),
    },
  };
}

function reasoningFields({ reasoning: { effort } }: BackendRequest, { reasoningEffort }: Dialect): object {
  if (effort === undefined) return {};
  const isSwitched = reasoningEffort.includes("enable_thinking");
  return {
    ...(effort === "none" && isSwitched ? {} : { reasoning_effort: effort }),
    ...(isSwitched ? { chat_template_kwargs: { enable_thinking: effort !== "none" } } : {}),
  };
}

function logprobFields({ logprobs }: Sampling): object {
  return logprobs === undefined ? {} : { logprobs: true, top_logprobs: logprobs };
}
