import {
  type ContentPart,
  CoreError,
  type InputItem,
  makeRequest,
  type ResponseChanges,
  type ResponseInput,
  type ResponseRequest,
} from "@plenum/core";
import { durationMs } from "../../config/durations.ts";
import { compact } from "../shared/compact.ts";
import type { HeaderFields } from "../shared/request-headers.ts";
import type { WireChanges, WireItem, WireRequest } from "./schema.ts";

/**
 * The core's request for a native one.
 * @param nowMs milliseconds since the epoch, from which `timeout_ms` counts.
 * @param isStream streams go on when their connection is lost, everything else is cancelled (LMSP §5).
 * @param headers what the request's headers say; the body's own fields win.
 * @throws CoreError invalid-request
 */
export function toCoreRequest(
  wire: WireRequest,
  nowMs: number,
  isStream: boolean,
  headers: HeaderFields = {},
): ResponseRequest {
  return makeRequest({
    onDisconnect: isStream ? "continue" : "cancel",
    ...headers,
    ...compact({
      instructions: wire.instructions,
      parallelToolCalls: wire.parallel_tool_calls,
      candidates: wire.candidates,
      previousResponseId: wire.previous_response_id,
      truncation: wire.truncation,
      metadata: wire.metadata,
      store: wire.store,
      background: wire.background,
      priority: wire.priority,
      supersedes: wire.supersedes,
      onDisconnect: wire.on_disconnect,
      runtimeOptions: wire.runtime_options,
      toolChoice: wire.tool_choice,
      deadlineMs: deadlineOf(wire, nowMs),
      keepAliveMs: keepAliveOf(wire),
    }),
    model: wire.model,
    input: toInput(wire.input),
    tools: (wire.tools ?? []).map(({ name, ...rest }) => ({
      name,
      ...compact({ description: rest.description, parameters: rest.parameters, strict: rest.strict }),
    })),
    output: toOutput(wire),
    sampling: toSampling(wire),
    reasoning: compact({ effort: wire.reasoning?.effort }),
  });
}

/**
 * The core's changes for native ones.
 * @param nowMs milliseconds since the epoch, from which `timeout_ms` counts.
 * @throws CoreError invalid-request when there are none.
 */
export function toChanges(wire: WireChanges, nowMs: number): ResponseChanges {
  const changes = compact({ priority: wire.priority, deadlineMs: deadlineOf(wire, nowMs) });
  if (Object.keys(changes).length > 0) return changes;
  throw new CoreError("invalid-request", "Name what to change: priority, deadline or timeout_ms.");
}

function deadlineOf(wire: Pick<WireRequest, "deadline" | "timeout_ms">, nowMs: number): number | undefined {
  const instant = wire.deadline == null ? undefined : Date.parse(wire.deadline);
  const timeout = wire.timeout_ms == null ? undefined : nowMs + wire.timeout_ms;
  if (instant === undefined) return timeout;
  return timeout === undefined ? instant : Math.min(instant, timeout);
}

function keepAliveOf({ keep_alive }: WireRequest): number | undefined {
  if (keep_alive == null) return undefined;
  return durationMs(keep_alive);
}

function toInput(input: WireRequest["input"]): ResponseInput {
  if (typeof input === "string") {
    return {
      kind: "items",
      items: [{ type: "message", role: "user", content: [{ type: "text", text: input }] }],
    };
  }
  if (Array.isArray(input)) return { kind: "items", items: input.map(toItem) };
  return { kind: "completion", prompt: input.prompt, raw: input.raw ?? false, ...compact({ suffix: input.suffix }) };
}

function toItem(item: WireItem): InputItem {
  switch (item.type) {
    case "message":
      return { type: "message", role: item.role, content: toParts(item.content) };
    case "function_call":
      return { type: "function_call", callId: item.call_id, name: item.name, arguments: item.arguments };
    case "function_call_output":
      return { type: "function_call_output", callId: item.call_id, output: item.output };
    case "reasoning":
      return { type: "reasoning", text: item.text };
  }
}

function toParts(content: Extract<WireItem, { type: "message" }>["content"]): ContentPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return content.map((part) =>
    part.type === "input_image"
      ? { type: "image", url: part.image_url, ...compact({ detail: part.detail }) }
      : { type: "text", text: part.text },
  );
}

function toOutput({ output }: WireRequest): ResponseRequest["output"] {
  const format = output?.format ?? { type: "text" as const };
  return {
    format:
      format.type === "json_schema"
        ? {
            type: "json_schema",
            schema: format.schema,
            strict: format.strict ?? true,
            ...compact({ name: format.name }),
          }
        : { type: format.type },
    ...compact({ maxTokens: output?.max_tokens }),
  };
}

function toSampling({ sampling }: WireRequest): ResponseRequest["sampling"] {
  if (sampling == null) return {};
  const { stop } = sampling;
  return compact({
    temperature: sampling.temperature,
    topP: sampling.top_p,
    topK: sampling.top_k,
    minP: sampling.min_p,
    typicalP: sampling.typical_p,
    seed: sampling.seed,
    stop: typeof stop === "string" ? [stop] : stop,
    presencePenalty: sampling.presence_penalty,
    frequencyPenalty: sampling.frequency_penalty,
    repeatPenalty: sampling.repeat_penalty,
    repeatLastN: sampling.repeat_last_n,
    logitBias: sampling.logit_bias,
    logprobs: sampling.logprobs,
  });
}
