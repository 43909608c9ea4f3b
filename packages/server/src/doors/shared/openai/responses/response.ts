import type { Problem, Response, ResponseRequest, ToolChoice } from "@plenum/core";
import { compact } from "../../compact.ts";
import type { ToWireError } from "../event-source.ts";
import { toResponsesUsage } from "../usage.ts";
import { toOutputItem } from "./output-items.ts";

/** The request's part of a response object: the same for every event of a stream. */
export type RequestFacts = Pick<
  ResponseRequest,
  | "instructions"
  | "output"
  | "parallelToolCalls"
  | "reasoning"
  | "sampling"
  | "store"
  | "toolChoice"
  | "tools"
  | "truncation"
>;

/** A response with every member that some client needs, absent things as null. */
export function toResponseObject(
  response: Response,
  request: RequestFacts,
  toWireError: ToWireError,
): Record<string, unknown> {
  return {
    id: response.id,
    object: "response",
    created_at: Math.floor(response.createdAt / 1000),
    status: response.status,
    background: response.background ?? false,
    completed_at: response.status === "completed" ? Math.floor((response.finishedAt ?? 0) / 1000) : null,
    error: response.status === "failed" ? toResponseError(response.problem, toWireError) : null,
    incomplete_details: response.incompleteReason === undefined ? null : { reason: toIncompleteReason(response) },
    model: response.model,
    previous_response_id: response.previousResponseId ?? null,
    ...toRequestMembers(request),
    output: response.output.map(toOutputItem),
    usage: response.usage === undefined ? null : toResponsesUsage(response.usage),
    user: null,
    metadata: response.metadata,
  };
}

function toRequestMembers({ sampling, ...request }: RequestFacts): Record<string, unknown> {
  return {
    instructions: request.instructions ?? null,
    max_output_tokens: request.output.maxTokens ?? null,
    max_tool_calls: null,
    parallel_tool_calls: request.parallelToolCalls,
    reasoning: { effort: request.reasoning.effort ?? null, summary: null },
    service_tier: "default",
    store: request.store,
    temperature: sampling.temperature ?? null,
    text: { format: toTextFormat(request.output.format) },
    tool_choice: toWireChoice(request.toolChoice),
    tools: request.tools.map((tool) => ({
      type: "function",
      name: tool.name,
      description: tool.description ?? null,
      parameters: tool.parameters ?? null,
      strict: tool.strict ?? false,
    })),
    top_logprobs: sampling.logprobs ?? 0,
    top_p: sampling.topP ?? null,
    truncation: request.truncation === "oldest" ? "auto" : "disabled",
  };
}

function toTextFormat(format: ResponseRequest["output"]["format"]): Record<string, unknown> {
  switch (format.type) {
    case "text":
      return { type: "text" };
    case "json":
      return { type: "json_object" };
    case "json_schema": {
      const { name, schema, strict } = format;
      return { type: "json_schema", ...compact({ name }), schema, strict };
    }
  }
}

function toWireChoice(choice: ToolChoice): unknown {
  return typeof choice === "string" ? choice : { type: "function", name: choice.name };
}

function toIncompleteReason({ incompleteReason }: Response): string {
  return incompleteReason === "max_tokens" ? "max_output_tokens" : "content_filter";
}

/** The codes of this object are a closed list in OpenAI's types; ours are kept where clients match on them. */
function toResponseError(problem: Problem | undefined, toWireError: ToWireError): Record<string, unknown> {
  if (problem === undefined) return { code: "server_error", message: "The response failed." };
  const { type, code, message } = toWireError(problem);
  if (type === "server_error") return { code: "server_error", message };
  return { code: code ?? "invalid_prompt", message };
}
