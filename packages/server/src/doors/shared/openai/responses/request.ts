import { makeRequest, type OutputFormat, type ToolChoice } from "@plenum/core";
import { compact } from "../../compact.ts";
import type { HeaderFields } from "../../request-headers.ts";
import { type ConvertedRequest, type Renaming, renamePath, samplingRenamings } from "../converted.ts";
import { readFields, refuse } from "../fields.ts";
import { toReasoning } from "../reasoning.ts";
import { toKeepAliveMs, toSampling } from "../sampling.ts";
import { choiceAmong } from "../tools.ts";
import { responsesTable } from "./fields.ts";
import { toItems } from "./items.ts";
import type { ResponsesBody } from "./schema.ts";
import { toTools } from "./tools.ts";

const logprobsInclude = "message.output_text.logprobs";

/**
 * The core's request for a Responses body.
 * @throws CoreError invalid-request, unsupported-capability, with the field as `param`.
 */
export function toResponsesRequest(body: ResponsesBody, headers: HeaderFields): ConvertedRequest {
  const ignored = readFields(body, responsesTable);
  const { verbosity } = body.text ?? {};
  if (verbosity != null && verbosity !== "medium") {
    refuse("text.verbosity", "ask for length in the prompt; `medium` is taken");
  }
  if (body.background && body.store === false) refuse("store", "a background response is stored; leave it out");
  const { items, places } = toItems(body.input);
  const { tools, indexes, withoutEffect } = toTools(body.tools);
  return {
    request: makeRequest({
      model: body.model,
      input: { kind: "items", items },
      tools,
      toolChoice: choiceAmong(tools, toToolChoice(body.tool_choice)),
      output: { format: toFormat(body.text?.format), ...compact({ maxTokens: body.max_output_tokens }) },
      sampling: toSampling(body, toLogprobs(body)),
      reasoning: toReasoning(body.reasoning?.effort),
      truncation: body.truncation === "auto" ? "oldest" : "none",
      store: body.store ?? true,
      background: body.background,
      instructions: body.instructions,
      parallelToolCalls: body.parallel_tool_calls,
      previousResponseId: body.previous_response_id,
      metadata: body.metadata,
      keepAliveMs: toKeepAliveMs(body.keep_alive),
      ...headers,
    }),
    isStream: body.stream ?? false,
    withoutEffect: [...ignored, ...nestedWithoutEffect(body), ...withoutEffect],
    param: (path) => toParam(path, body, places, indexes),
  };
}

function nestedWithoutEffect({ include, reasoning, text }: ResponsesBody): string[] {
  const names = (include ?? []).filter((name) => name !== logprobsInclude).map((name) => `include.${name}`);
  for (const name of ["summary", "generate_summary", "context", "mode"] as const) {
    if (reasoning?.[name] != null) names.push(`reasoning.${name}`);
  }
  if (text?.format?.type === "json_schema" && text.format.description) names.push("text.format.description");
  return names;
}

function toLogprobs({ top_logprobs: top, include }: ResponsesBody): number | undefined {
  return top ?? (include?.includes(logprobsInclude) ? 0 : undefined);
}

type TextFormat = NonNullable<ResponsesBody["text"]>["format"];

function toFormat(format: TextFormat): OutputFormat {
  switch (format?.type) {
    case undefined:
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema": {
      const { name, schema, strict } = format;
      return { type: "json_schema", schema, strict: strict ?? false, ...compact({ name }) };
    }
  }
}

function toToolChoice(choice: ResponsesBody["tool_choice"]): ToolChoice {
  if (choice === null || choice === undefined) return "auto";
  return typeof choice === "string" ? choice : { name: choice.name };
}

function toParam(path: string, body: ResponsesBody, places: readonly string[], indexes: readonly number[]): string {
  return renamePath(path, [
    ...places.map((place, index): Renaming => [`input[${index}]`, place]),
    ...indexes.map((place, index): Renaming => [`tools[${index}]`, `tools[${place}]`]),
    ["output.max_tokens", "max_output_tokens"],
    ["output.format", "text.format"],
    ["sampling.logprobs", body.top_logprobs == null ? "include" : "top_logprobs"],
    ...samplingRenamings,
  ]);
}
