import { CoreError } from "../problems/core-error.ts";
import type { ResponseRequest } from "../request/request.ts";
import { wireName } from "../request/wire-name.ts";
import type { Capability, CatalogModel } from "./model.ts";

/** What a request needs, with the field that asks for it. */
function needs(request: ResponseRequest): [Capability, string][] {
  const { input, tools, toolChoice, output, sampling } = request;
  const needed: [Capability, string][] = [];
  if (input.kind === "items") needed.push(["chat", "input"]);
  else needed.push([input.raw ? "completion" : "chat", "input"]);
  if (input.kind === "completion" && input.suffix) needed.push(["insert", "input.suffix"]);
  if (hasImages(request)) needed.push(["vision", "input"]);
  if (tools.length > 0 && toolChoice !== "none") needed.push(["tools", "tools"]);
  if (output.format.type !== "text") needed.push(["structuredOutput", "output.format"]);
  if (sampling.logprobs !== undefined) needed.push(["logprobs", "sampling.logprobs"]);
  return needed;
}

function hasImages({ input }: ResponseRequest): boolean {
  if (input.kind !== "items") return false;
  return input.items.some((item) => item.type === "message" && item.content.some((part) => part.type === "image"));
}

const words: Readonly<Record<Capability, string>> = {
  chat: "chat",
  completion: "complete a prompt",
  embeddings: "make embeddings",
  tools: "call tools",
  structuredOutput: "answer in a given format",
  reasoning: "reason",
  vision: "see images",
  logprobs: "tell log probabilities",
  insert: "fill in the middle",
};

/**
 * @param all models to name when this one can't.
 * @throws CoreError unsupported-capability, with the models that have it.
 */
export function requireCapability(
  model: CatalogModel,
  capability: Capability,
  param: string,
  all: () => readonly CatalogModel[],
): void {
  if (model.capabilities[capability]) return;
  const able = all()
    .filter((other) => other.capabilities[capability])
    .map((other) => other.id);
  const hint = able.length === 0 ? "No model here can." : `These can: ${able.join(", ")}.`;
  throw new CoreError("unsupported-capability", `'${model.id}' can't ${words[capability]}. ${hint}`, {
    capability: wireName(capability),
    model: model.id,
    param,
  });
}

/** @throws CoreError backend-unavailable, with what the runtime says of it. */
export function requireAvailable(model: CatalogModel): void {
  if (model.state !== "unavailable") return;
  throw new CoreError("backend-unavailable", model.stateDetail ?? `'${model.id}' can't be reached.`, {
    model: model.id,
    param: "model",
  });
}

/** @throws CoreError unsupported-capability for the first thing that the model can't do. */
export function requireCapabilities(
  model: CatalogModel,
  request: ResponseRequest,
  all: () => readonly CatalogModel[],
): void {
  for (const [capability, param] of needs(request)) requireCapability(model, capability, param, all);
}
