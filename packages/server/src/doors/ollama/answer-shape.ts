import { CoreError, type OutputFunctionCall, type Response, type TokenLogprob } from "@plenum/core";

/** Output of one line or of a whole answer. */
export interface AnswerParts {
  readonly text?: string;
  readonly thinking?: string;
  /** JSON texts of tool calls. */
  readonly toolCalls?: readonly string[];
  readonly logprobs?: readonly TokenLogprob[];
}

/** Where `/api/chat` and `/api/generate` differ. Lines are put together as text: one is made for every token. */
export interface AnswerShape {
  output(parts: AnswerParts): string;
  /** Members after `done_reason`, in Ollama's order. */
  tail(metrics: string, logprobs: string): string;
}

export const chatShape: AnswerShape = {
  output({ text = "", thinking, toolCalls }) {
    const content = `"role":"assistant","content":${JSON.stringify(text)}`;
    const calls = toolCalls?.length ? `,"tool_calls":[${toolCalls.join(",")}]` : "";
    return `"message":{${content}${thinkingMember(thinking)}${calls}}`;
  },
  tail: (metrics, logprobs) => logprobs + metrics,
};

export const generateShape: AnswerShape = {
  output: ({ text = "", thinking }) => `"response":${JSON.stringify(text)}${thinkingMember(thinking)}`,
  tail: (metrics, logprobs) => metrics + logprobs,
};

/** What every line of an answer begins with: the model's name as the client sent it, and the time. */
export function head(model: string, atMs: number): string {
  return `{"model":${JSON.stringify(model)},"created_at":"${new Date(atMs).toISOString()}",`;
}

/** `head` for the lines of one answer: most of them share its second, and a date costs as much as the rest of a line. */
export function headsOf(model: string): (atMs: number) => string {
  const begin = `{"model":${JSON.stringify(model)},"created_at":"`;
  let second = Number.NaN;
  let upToSecond = "";
  return (atMs) => {
    const ms = Math.trunc(atMs) % 1000;
    if (atMs - ms !== second) {
      second = atMs - ms;
      upToSecond = begin + new Date(atMs).toISOString().slice(0, -"000Z".length);
    }
    return `${upToSecond}${String(ms).padStart(3, "0")}Z",`;
  };
}

/** A line before the last. */
export function piece(shape: AnswerShape, begin: string, parts: AnswerParts): string {
  return `${begin}${shape.output(parts)},"done":false${logprobsMember(parts.logprobs)}}`;
}

/** The last line, or a whole answer. */
export function whole(shape: AnswerShape, begin: string, parts: AnswerParts, response: Response): string {
  const tail = shape.tail(metrics(response), logprobsMember(parts.logprobs));
  return `${begin}${shape.output(parts)},"done":true,"done_reason":"${doneReason(response)}"${tail}}`;
}

/** Answer to a request that only loads or unloads. */
export function idle(shape: AnswerShape, begin: string, doneReason: "load" | "unload"): string {
  return `${begin}${shape.output({})},"done":true,"done_reason":"${doneReason}"}`;
}

/**
 * One tool call. Its arguments stay the model's own JSON text, so that big whole numbers stay exact.
 * @throws CoreError invalid-output when they are not the text of a JSON object.
 */
export function toolCall(call: OutputFunctionCall, index: number): string {
  const { callId, name, arguments: text } = call;
  // A line break can only stand between JSON tokens; in a line it would end it.
  const argumentsJson = text.trim() === "" ? "{}" : text.replace(/[\r\n]/g, " ");
  if (!isObject(argumentsJson)) {
    throw new CoreError("invalid-output", `The model called '${name}' with arguments that are not a JSON object.`);
  }
  const called = `"index":${index},"name":${JSON.stringify(name)},"arguments":${argumentsJson}`;
  return `{"id":${JSON.stringify(callId)},"function":{${called}}}`;
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function thinkingMember(thinking: string | undefined): string {
  return thinking ? `,"thinking":${JSON.stringify(thinking)}` : "";
}

function logprobsMember(logprobs: readonly TokenLogprob[] | undefined): string {
  if (!logprobs?.length) return "";
  const wire = logprobs.map(({ token, logprob, bytes, top }) => ({
    token,
    logprob,
    bytes,
    ...(top.length > 0 ? { top_logprobs: top } : {}),
  }));
  return `,"logprobs":${JSON.stringify(wire)}`;
}

/** Ollama has no word of its own for tool calls: they end with `stop`. */
function doneReason({ finishes }: Response): string {
  const reason = finishes.find(({ candidate }) => candidate === 0)?.finishReason ?? "stop";
  return reason === "tool_calls" ? "stop" : reason;
}

/** Counts, and durations in nanoseconds; what is zero or not known is left out, as in Ollama. */
function metrics({ timings, usage }: Response): string {
  const members: readonly (readonly [name: string, value: number])[] = [
    ["total_duration", nanoseconds(timings.totalMs)],
    ["load_duration", nanoseconds(timings.loadMs)],
    ["prompt_eval_count", usage?.inputTokens ?? 0],
    ["prompt_eval_duration", nanoseconds(timings.promptMs)],
    ["eval_count", usage?.outputTokens ?? 0],
    ["eval_duration", nanoseconds(timings.generationMs)],
  ];
  return members.map(([name, value]) => (value > 0 ? `,"${name}":${value}` : "")).join("");
}

/** @param ms milliseconds; absent: 0. */
export function nanoseconds(ms = 0): number {
  return Math.round(ms * 1e6);
}
