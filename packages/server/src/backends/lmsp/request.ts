import type { InputItem as WireItem, ResponseRequest as WireRequest } from "@plenum/client";
import { type BackendModel, type BackendRequest, type InputItem, type Sampling, wireName } from "@plenum/core";

/**
 * A core request in the native interface's words. It is stored nowhere over there: what is kept is kept here. The deadline
 * goes as the time that is left, since the clocks of two machines differ.
 */
export function toWireRequest(request: BackendRequest, model: BackendModel, nowMs: number): WireRequest {
  const { input, instructions, tools, toolChoice, output, reasoning, keepAliveMs, deadlineMs } = request;
  const sampling = samplingOf(request, model);
  return {
    model: model.name,
    input:
      input.kind === "items"
        ? input.items.map(toWireItem)
        : {
            prompt: input.prompt,
            ...(input.suffix === undefined ? {} : { suffix: input.suffix }),
            raw: input.raw,
          },
    ...(instructions === undefined ? {} : { instructions }),
    ...(tools.length === 0 ? {} : { tools }),
    ...(toolChoice === "auto" ? {} : { tool_choice: toolChoice }),
    parallel_tool_calls: request.parallelToolCalls,
    output: {
      format: output.format,
      ...(output.maxTokens === undefined ? {} : { max_tokens: output.maxTokens }),
    },
    ...(sampling === undefined ? {} : { sampling }),
    ...(reasoning.effort === undefined ? {} : { reasoning: { effort: reasoning.effort } }),
    ...(request.candidates === 1 ? {} : { candidates: request.candidates }),
    ...(request.truncation === "none" ? {} : { truncation: request.truncation }),
    ...(keepAliveMs === undefined ? {} : { keep_alive: keepAliveMs }),
    ...(request.priority === 0 ? {} : { priority: request.priority }),
    ...(deadlineMs === undefined ? {} : { timeout_ms: timeLeftMs(deadlineMs, nowMs) }),
    store: false,
    runtime_options: request.runtimeOptions,
  };
}

/** Longest time that LMSP takes. */
const longestTimeoutMs = 2_147_483_647;

export function timeLeftMs(deadlineMs: number, nowMs: number): number {
  return Math.min(longestTimeoutMs, Math.max(1, Math.ceil(deadlineMs - nowMs)));
}

/** What the door's API does by default goes along where the model heeds it; the service would have its own defaults. */
function samplingOf({ sampling, samplingDefaults }: BackendRequest, { parameters }: BackendModel): object | undefined {
  const defaults = Object.entries(samplingDefaults ?? {}).filter(([name]) => parameters[wireName(name)] === "honoured");
  const all: Sampling = { ...Object.fromEntries(defaults), ...sampling };
  const fields = Object.entries(all).filter(([, value]) => value !== undefined);
  return fields.length === 0 ? undefined : Object.fromEntries(fields.map(([name, value]) => [wireName(name), value]));
}

function toWireItem(item: InputItem): WireItem {
  switch (item.type) {
    case "message": {
      const text = item.role === "assistant" ? "output_text" : "input_text";
      return {
        type: "message",
        role: item.role,
        content: item.content.map((part) =>
          part.type === "text"
            ? { type: text, text: part.text }
            : {
                type: "input_image",
                image_url: part.url,
                ...(part.detail === undefined ? {} : { detail: part.detail }),
              },
        ),
      };
    }
    case "function_call":
      return { type: "function_call", call_id: item.callId, name: item.name, arguments: item.arguments };
    case "function_call_output":
      return { type: "function_call_output", call_id: item.callId, output: item.output };
    case "reasoning":
      return { type: "reasoning", text: item.text };
  }
}
