import type { BackendRequest } from "@plenum/core";
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
  const { output, sampling, candidates } = request;
  const infill = infillOf(request);
  const rendered = infill === undefined ? format.render(request) : undefined;
  const { logprobs, stop = [] } = sampling;
  const message: Omit<GenerateMessage, "id"> = {
    type: "generate",
    prompt: infill ?? { kind: "pieces", pieces: rendered?.pieces ?? [] },
    candidates,
    sampling: samplingSettings({ ...request.samplingDefaults, ...sampling }),
    stop: [...new Set([...stop, ...(rendered?.stop ?? [])])],
    visibleTokens: format.visibleTokens,
    ...(output.maxTokens === undefined ? {} : { maxTokens: output.maxTokens }),
    ...(rendered?.grammar === undefined ? {} : { grammar: rendered.grammar }),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
  return {
    message: (id) => ({ ...message, id }),
    createParser: (candidate) =>
      infill === undefined ? format.createOutputParser(request, candidate) : createPlainParser(candidate),
  };
}

/** A completion with a text that has to follow it knows no format: the model's own tokens mark its parts. */
function infillOf({ input, output }: BackendRequest): GenerateMessage["prompt"] | undefined {
  if (input.kind !== "completion" || !input.suffix) return undefined;
  if (output.format.type !== "text") throw invalid("A suffix goes with text only.", "output.format");
  return { kind: "infill", prefix: input.prompt, suffix: input.suffix };
}
