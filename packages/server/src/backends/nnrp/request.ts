import type { BackendModel, BackendRequest, TraceContext } from "@plenum/core";
import { type PriorityUpdate, SessionPriorityClass } from "@plenum/nnrp";
import { type CallOptions, traceFromTraceparent } from "@plenum/profile";
import { openaiBody } from "../shared/openai/body-dialect.ts";
import { type Body, chatBody } from "../shared/openai/chat-body.ts";
import { kind } from "./options.ts";

/** A core request in OpenAI's words. */
export function chatRequest(request: BackendRequest, model: BackendModel, isStream: boolean): Body {
  const body = chatBody(request, model, kind, openaiBody);
  return isStream ? { ...body, stream: true, stream_options: { include_usage: true } } : { ...body, stream: false };
}

/** What of a request NNRP says beside the body. */
export interface Urgency {
  /** -8 … 8, higher sooner. */
  readonly priority: number;
  /** Milliseconds since the epoch. */
  readonly deadlineMs?: number;
  readonly trace?: TraceContext;
}

/**
 * The deadline goes as the time that is left, since the clocks of two machines differ. Of a trace, NNRP carries the lower
 * half of its id, the span and whether it is sampled.
 */
export function urgencyOptions({ priority, deadlineMs, trace }: Urgency, nowMs: number): CallOptions {
  const traceContext = trace === undefined ? undefined : traceFromTraceparent(trace.traceparent);
  return {
    ...(traceContext === undefined ? {} : { traceContext }),
    ...trace,
    ...(priority === 0 ? {} : { priority: toPriorityUpdate(priority) }),
    ...(deadlineMs === undefined ? {} : { timeoutMs: Math.max(1, Math.ceil(deadlineMs - nowMs)) }),
  };
}

/** Priority that stands for a class; what is between goes as its delta. */
const classStep = 4;

function toPriorityUpdate(priority: number): PriorityUpdate {
  const { interactive, balanced, background } = SessionPriorityClass;
  if (priority >= classStep) return { priorityClass: interactive, delta: priority - classStep };
  if (priority <= -classStep) return { priorityClass: background, delta: priority + classStep };
  return { priorityClass: balanced, delta: priority };
}
