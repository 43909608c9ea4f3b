import type { BackendModel, BackendRequest, FunctionTool, Sampling } from "@plenum/core";
import type { BodyDialect } from "./body-dialect.ts";
import { chatMessages } from "./chat-messages.ts";

/** A body of OpenAI's API. */
export type Body = Readonly<Record<string, unknown>>;

/** A core request as the body of a chat completion, without what tells how the answer comes (`stream`). */
export function chatBody(request: BackendRequest, model: BackendModel, kind: string, dialect: BodyDialect): Body {
  return {
    ...sharedFields(request, model, kind, dialect, dialect.maxTokens),
    messages: chatMessages(request, dialect.pastReasoning),
    ...toolFields(request, dialect),
    ...reasoningFields(request, dialect),
    ...logprobFields(request.sampling),
  };
}

/** Fields that chats and completions have in common. */
export function sharedFields(
  request: BackendRequest,
  model: BackendModel,
  kind: string,
  dialect: BodyDialect,
  maxTokensName: string,
): Body {
  return {
    ...request.runtimeOptions[kind],
    model: model.name,
    ...samplingFields(request.sampling, dialect),
    ...maxTokensField(request, model, maxTokensName),
    ...(request.candidates > 1 ? { n: request.candidates } : {}),
    ...(dialect.priority && request.priority !== 0 ? { priority: -request.priority } : {}),
    ...formatField(request, dialect),
  };
}

function samplingFields(sampling: Sampling, dialect: BodyDialect): Record<string, unknown> {
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
function maxTokensField({ output: { maxTokens } }: BackendRequest, { limits }: BackendModel, name: string): object {
  if (maxTokens === undefined || maxTokens >= (limits.contextTokens ?? Number.POSITIVE_INFINITY)) return {};
  return { [name]: maxTokens };
}

function formatField({ output: { format } }: BackendRequest, dialect: BodyDialect): object {
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

function toolFields(request: BackendRequest, dialect: BodyDialect): object {
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

function reasoningFields({ reasoning: { effort } }: BackendRequest, { reasoningEffort }: BodyDialect): object {
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
