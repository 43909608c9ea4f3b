import { makeRequest, type OutputFormat, type ToolChoice } from "@plenum/core";
import { compact } from "../../compact.ts";
import type { HeaderFields } from "../../request-headers.ts";
import { type ConvertedRequest, renamePath, samplingRenamings } from "../converted.ts";
import { invalid, readFields } from "../fields.ts";
import { toReasoning } from "../reasoning.ts";
import { toKeepAliveMs, toSampling } from "../sampling.ts";
import { streamOptionsWithoutEffect } from "../stream-options.ts";
import { choiceAmong, toFunctionTool } from "../tools.ts";
import { chatTable } from "./fields.ts";
import { toItems } from "./messages.ts";
import type { ChatBody } from "./schema.ts";

export interface ConvertedChat extends ConvertedRequest {
  readonly includeUsage: boolean;
}

/**
 * The core's request for a chat.
 * @throws CoreError invalid-request, unsupported-capability, with the field as `param`.
 */
export function toChatRequest(body: ChatBody, headers: HeaderFields): ConvertedChat {
  const withoutEffect = [...readFields(body, chatTable), ...nestedWithoutEffect(body)];
  const { items, places } = toItems(body.messages);
  const tools = (body.tools ?? []).map((tool) => toFunctionTool(tool.function));
  const format = toFormat(body.response_format);
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  return {
    request: makeRequest({
      model: body.model,
      input: { kind: "items", items },
      tools,
      toolChoice: choiceAmong(tools, toToolChoice(body.tool_choice)),
      output: maxTokens == null ? { format } : { format, maxTokens },
      sampling: toSampling(body, toLogprobs(body)),
      reasoning: toReasoning(body.reasoning_effort),
      parallelToolCalls: body.parallel_tool_calls,
      candidates: body.n,
      metadata: body.metadata,
      keepAliveMs: toKeepAliveMs(body.keep_alive),
      ...headers,
    }),
    isStream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    withoutEffect,
    param: (path) => toParam(path, body, places),
  };
}

function nestedWithoutEffect(body: ChatBody): string[] {
  const { response_format: format } = body;
  const names = streamOptionsWithoutEffect(body);
  if (format?.type === "json_schema" && format.json_schema.description) {
    names.push("response_format.json_schema.description");
  }
  if (body.messages.some((message) => message.role !== "tool" && message.name)) names.push("messages.name");
  return names;
}

function toLogprobs({ logprobs, top_logprobs: top }: ChatBody): number | undefined {
  if (logprobs) return top ?? 0;
  if (top) invalid("top_logprobs", "it needs logprobs: true");
  return undefined;
}

function toFormat(format: ChatBody["response_format"]): OutputFormat {
  switch (format?.type) {
    case undefined:
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema": {
      const { name, schema, strict } = format.json_schema;
      return { type: "json_schema", schema, strict: strict ?? false, ...compact({ name }) };
    }
  }
}

function toToolChoice(choice: ChatBody["tool_choice"]): ToolChoice {
  if (choice === null || choice === undefined) return "auto";
  return typeof choice === "string" ? choice : { name: choice.function.name };
}

function toParam(path: string, body: ChatBody, places: readonly string[]): string {
  const tool = /^tools\[\d+\]/.exec(path)?.[0];
  return renamePath(path, [
    ...places.map((place, index) => [`input[${index}]`, place] as const),
    ["input", "messages"],
    ...(tool === undefined ? [] : [[tool, `${tool}.function`] as const]),
    ["output.max_tokens", body.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens"],
    ["output.format.schema", "response_format.json_schema.schema"],
    ["output.format", "response_format"],
    ["sampling.logprobs", body.top_logprobs == null ? "logprobs" : "top_logprobs"],
    ...samplingRenamings,
    ["reasoning.effort", "reasoning_effort"],
    ["candidates", "n"],
  ]);
}
