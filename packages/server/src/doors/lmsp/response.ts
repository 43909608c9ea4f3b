import type { CatalogModel, OutputItem, Response, Timings, TokenLogprob, Usage } from "@plenum/core";
import { compact } from "../shared/compact.ts";
import { toProblemBody } from "./errors.ts";

/** A Response in the native interface's words (LMSP §5). */
export function toWireResponse(response: Response): Record<string, unknown> {
  return compact({
    id: response.id,
    object: "response",
    status: response.status,
    background: response.background,
    model: response.model,
    door: response.door,
    runtime: response.runtime,
    output: response.output.map(toWireItem),
    usage: response.usage && toWireUsage(response.usage),
    timings: toWireTimings(response.timings),
    incomplete_reason: response.incompleteReason,
    problem: response.problem && toProblemBody(response.problem),
    attempt: response.attempt,
    priority: response.priority,
    deadline: toInstant(response.deadlineMs),
    created_at: toInstant(response.createdAt),
    started_at: toInstant(response.startedAt),
    finished_at: toInstant(response.finishedAt),
    metadata: response.metadata,
  });
}

export function toWireItem(item: OutputItem): Record<string, unknown> {
  const { id, candidate, index, status } = item;
  switch (item.type) {
    case "message":
      return { id, type: "message", role: "assistant", candidate, index, status, content: toWireContent(item) };
    case "reasoning":
      return { id, type: "reasoning", candidate, index, status, text: item.text };
    case "function_call":
      return {
        id,
        type: "function_call",
        candidate,
        index,
        status,
        call_id: item.callId,
        name: item.name,
        arguments: item.arguments,
      };
  }
}

function toWireContent(item: Extract<OutputItem, { type: "message" }>): Record<string, unknown>[] {
  const parts: Record<string, unknown>[] = [];
  if (item.text !== "" || item.refusal === "") {
    const logprobs = item.logprobs.length > 0 ? item.logprobs.map(toWireLogprob) : undefined;
    parts.push(compact({ type: "output_text", text: item.text, logprobs }));
  }
  if (item.refusal !== "") parts.push({ type: "refusal", refusal: item.refusal });
  return parts;
}

export function toWireLogprob({ token, logprob, bytes, top }: TokenLogprob): Record<string, unknown> {
  return { token, logprob, bytes, top_logprobs: top };
}

function toWireUsage(usage: Usage): Record<string, number> {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    cached_input_tokens: usage.cachedInputTokens,
    reasoning_tokens: usage.reasoningTokens,
  };
}

function toWireTimings(timings: Timings): Record<string, number> {
  return compact({
    queued: wholeMs(timings.queuedMs),
    load: wholeMs(timings.loadMs),
    prompt: wholeMs(timings.promptMs),
    generation: wholeMs(timings.generationMs),
    first_token: wholeMs(timings.firstTokenMs),
    total: wholeMs(timings.totalMs),
  });
}

function wholeMs(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms);
}

/** RFC 3339 with milliseconds. */
export function toInstant(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

/** A catalog entry in the native interface's words (LMSP §4). */
export function toWireModel(model: CatalogModel): Record<string, unknown> {
  const { capabilities, limits, details } = model;
  return compact({
    id: model.id,
    name: model.title,
    aliases: model.aliases,
    state: model.state,
    state_detail: model.stateDetail,
    capabilities: {
      chat: capabilities.chat,
      completion: capabilities.completion,
      embeddings: capabilities.embeddings,
      tools: capabilities.tools,
      structured_output: capabilities.structuredOutput,
      reasoning: capabilities.reasoning,
      vision: capabilities.vision,
      logprobs: capabilities.logprobs,
      insert: capabilities.insert,
    },
    emulated: model.emulated.map((name) => (name === "structuredOutput" ? "structured_output" : name)),
    limits: {
      context_tokens: limits.contextTokens ?? null,
      output_tokens: limits.outputTokens ?? null,
      embedding_dimensions: limits.embeddingDimensions ?? null,
      parallel: limits.parallel,
    },
    details: compact({
      family: details.family,
      parameters: details.parameters,
      quantization: details.quantization,
      format: details.format,
      size_bytes: details.sizeBytes,
      digest: details.digest,
      trained_context_tokens: details.trainedContextTokens,
    }),
    parameters: model.parameters,
    runtimes: model.runtimes.map((runtime) =>
      compact({
        id: runtime.id,
        kind: runtime.kind,
        state: runtime.state === "unavailable" ? "down" : "healthy",
        model: runtime.model,
        loaded: runtime.state === "loaded",
        memory_bytes: runtime.memoryBytes,
        via: runtime.via,
      }),
    ),
    created_at: toInstant(model.createdAtMs),
  });
}
