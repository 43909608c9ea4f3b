import type { BackendRequest, CoreError, ResponseInput } from "@plenum/core";
import type { ChatFormat, OutputParser } from "./chat-format/index.ts";
import { invalid, unsupported } from "./errors.ts";
import type { GenerateMessage } from "./messages.ts";
import { samplingSettings } from "./parameters.ts";
import { createPlainParser } from "./plain-parser.ts";

/** A request in the engine's words, and what reads its answers. */
export interface EngineRequest {
  message(id: number): GenerateMessage;
  createParser(candidate: number): OutputParser;
}

/** @throws CoreError invalid-request, unsupported-capability for what the model can't be asked. */
export function checkRequest(request: BackendRequest): void {
  const { input, model } = request;
  if (input.kind === "completion") {
    if (input.prompt === "" && !input.suffix)
      throw invalid("The prompt is empty; give at least one character.", "input");
    return;
  }
  if (input.items.length === 0 && !request.instructions) throw invalid("input needs at least one message.", "input");
  const hasImage = input.items.some(
    (item) => item.type === "message" && item.content.some((part) => part.type === "image"),
  );
  if (hasImage) throw unsupported(model, "vision", "see images");
}

/** @throws CoreError of the chat format or of the sampling fields. */
export function engineRequest(request: BackendRequest, format: ChatFormat): EngineRequest {
  const { input } = request;
  const isRaw = input.kind === "completion" && (input.raw || Boolean(input.suffix));
  const conversation = asConversation(request);
  const rendered = isRaw && request.output.format.type === "text" ? undefined : format.render(conversation);
  const { maxTokens } = request.output;
  const { logprobs, stop = [] } = request.sampling;
  const message: Omit<GenerateMessage, "id"> = {
    type: "generate",
    prompt:
      input.kind === "completion" && isRaw ? rawPrompt(input) : { kind: "pieces", pieces: rendered?.pieces ?? [] },
    candidates: request.candidates,
    sampling: samplingSettings(request.sampling),
    stop: [...new Set([...stop, ...(isRaw ? [] : (rendered?.stop ?? []))])],
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(rendered?.grammar === undefined ? {} : { grammar: rendered.grammar }),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
  return {
    message: (id) => ({ ...message, id }),
    createParser: (candidate) =>
      rendered === undefined ? createPlainParser(candidate) : format.createOutputParser(conversation, candidate),
  };
}

function rawPrompt(input: Extract<ResponseInput, { kind: "completion" }>): GenerateMessage["prompt"] {
  const { prompt, suffix } = input;
  if (suffix) return { kind: "infill", prefix: prompt, suffix };
  return { kind: "pieces", pieces: [{ text: prompt, parseSpecial: true }] };
}

/** A completion through the template is one message of the user. */
function asConversation(request: BackendRequest): BackendRequest {
  const { input } = request;
  if (input.kind === "items") return request;
  const text = input.prompt;
  const items = [{ type: "message", role: "user", content: [{ type: "text", text }] }] as const;
  return { ...request, input: { kind: "items", items } };
}

/**
 * The request without enough of its oldest turns that it may fit; whether it does, only its tokens tell.
 * @param drop takes one turn away, or gives undefined when none can go
 * @throws the given error when nothing can go
 */
export function shorten(
  request: BackendRequest,
  drop: (request: BackendRequest) => BackendRequest | undefined,
  error: CoreError,
): BackendRequest {
  const { limit = 0, requested = 1 } = error.details;
  const wanted = lengthOf(request) * Math.min(1, limit / requested);
  let shorter = drop(request);
  if (shorter === undefined) throw error;
  for (;;) {
    if (lengthOf(shorter) <= wanted) return shorter;
    const next = drop(shorter);
    if (next === undefined) return shorter;
    shorter = next;
  }
}

function lengthOf(request: BackendRequest): number {
  return JSON.stringify(request.input).length;
}
