import { CoreError } from "../problems/core-error.ts";
import type { InputItem } from "./items.ts";
import type { EmbeddingRequest, ResponseChanges, ResponseRequest, Sampling } from "./request.ts";
import { wireName } from "./wire-name.ts";

interface Range {
  readonly min: number;
  readonly max: number;
  readonly isWhole?: true;
}

/** Limits of the sampling fields, the same for every door. */
export const samplingRanges = {
  temperature: { min: 0, max: 2 },
  topP: { min: 0, max: 1 },
  topK: { min: 0, max: 1_000_000, isWhole: true },
  minP: { min: 0, max: 1 },
  typicalP: { min: 0, max: 1 },
  seed: { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, isWhole: true },
  presencePenalty: { min: -2, max: 2 },
  frequencyPenalty: { min: -2, max: 2 },
  repeatPenalty: { min: 0, max: 10 },
  repeatLastN: { min: -1, max: 1_000_000, isWhole: true },
  logprobs: { min: 0, max: 20, isWhole: true },
} as const satisfies Partial<Record<keyof Sampling, Range>>;

export const requestLimits = {
  stop: 16,
  candidates: 8,
  tools: 512,
  priority: 8,
  /** Milliseconds: ten years. */
  keepAliveMs: 315_360_000_000,
  metadataEntries: 16,
  embeddingInputs: 2_048,
} as const;

function refuse(path: string, detail: string): never {
  throw new CoreError("invalid-request", detail, { param: wireName(path) });
}

/**
 * What holds for every request whatever the door: ranges, counts, names. Types are checked by the door.
 * @throws CoreError invalid-request with `param`.
 */
export function validateRequest(request: ResponseRequest): void {
  validateInput(request);
  validateSampling(request.sampling);
  validateTools(request);
  inRange("output.maxTokens", request.output.maxTokens, { min: 1, max: Number.MAX_SAFE_INTEGER, isWhole: true });
  inRange("candidates", request.candidates, { min: 1, max: requestLimits.candidates, isWhole: true });
  validateTimes(request);
  if (Object.keys(request.metadata).length > requestLimits.metadataEntries) {
    refuse("metadata", `metadata holds at most ${requestLimits.metadataEntries} entries.`);
  }
}

/** @throws CoreError invalid-request with `param`. */
export function validateEmbeddingRequest(request: EmbeddingRequest): void {
  const { inputs, dimensions } = request;
  if (inputs.length === 0) refuse("input", "input needs at least one text.");
  if (inputs.length > requestLimits.embeddingInputs) {
    refuse("input", `input holds at most ${requestLimits.embeddingInputs} texts, this one has ${inputs.length}.`);
  }
  inRange("dimensions", dimensions, { min: 1, max: 1_000_000, isWhole: true });
  validateTimes(request);
}

/** Last instant that a date can hold, in milliseconds since the epoch. */
const lastInstantMs = 8_640_000_000_000_000;

/**
 * What may be changed of a request after its acceptance.
 * @throws CoreError invalid-request with `param`.
 */
export function validateChanges({ priority, deadlineMs, maxTokens }: ResponseChanges): void {
  const { priority: most } = requestLimits;
  inRange("priority", priority, { min: -most, max: most, isWhole: true });
  inRange("deadline", deadlineMs, { min: 0, max: lastInstantMs });
  inRange("output.maxTokens", maxTokens, { min: 1, max: Number.MAX_SAFE_INTEGER, isWhole: true });
}

function validateTimes({ priority, deadlineMs, keepAliveMs }: ResponseRequest | EmbeddingRequest): void {
  validateChanges({ priority, ...(deadlineMs === undefined ? {} : { deadlineMs }) });
  inRange("keepAlive", keepAliveMs, { min: -1, max: requestLimits.keepAliveMs });
}

function validateInput({ input, instructions }: ResponseRequest): void {
  if (input.kind === "completion") return;
  if (input.items.length === 0 && !instructions) refuse("input", "input needs at least one message.");
  for (const [index, item] of input.items.entries()) validateItem(item, index);
}

function validateItem(item: InputItem, index: number): void {
  if (item.type === "message") {
    for (const [place, part] of item.content.entries()) {
      // A runtime would fetch any other address from inside the operator's network.
      if (part.type === "image" && !/^data:/i.test(part.url)) {
        refuse(
          `input[${index}].content[${place}]`,
          "images are not fetched from the web; send the bytes as a data: URL.",
        );
      }
    }
  }
  if (item.type === "function_call" && !isJsonObject(item.arguments)) {
    refuse(`input[${index}].arguments`, `arguments of '${item.name}' must be the JSON text of an object.`);
  }
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

type RangedField = keyof typeof samplingRanges;

const samplingChecks = (Object.keys(samplingRanges) as RangedField[]).map((name) => ({
  name,
  path: `sampling.${name}`,
  range: samplingRanges[name],
}));

function validateSampling(sampling: Sampling): void {
  for (const { name, path, range } of samplingChecks) inRange(path, sampling[name], range);
  const { stop, logitBias } = sampling;
  if (stop !== undefined) {
    if (stop.length > requestLimits.stop) refuse("sampling.stop", `stop holds at most ${requestLimits.stop} texts.`);
    if (stop.includes("")) refuse("sampling.stop", "A stop text must not be empty.");
  }
  if (logitBias === undefined) return;
  for (const [token, bias] of Object.entries(logitBias)) {
    if (!/^\d+$/.test(token)) refuse("sampling.logitBias", `'${token}' is not a token id.`);
    inRange(`sampling.logitBias`, bias, { min: -100, max: 100 });
  }
}

function validateTools({ tools, toolChoice }: ResponseRequest): void {
  if (tools.length > requestLimits.tools) refuse("tools", `tools holds at most ${requestLimits.tools} tools.`);
  const names = new Set<string>();
  for (const [index, tool] of tools.entries()) {
    if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(tool.name)) {
      refuse(`tools[${index}].name`, `'${tool.name}' is no tool name: use 1 to 128 letters, digits, _ . : or -.`);
    }
    if (names.has(tool.name)) refuse(`tools[${index}].name`, `There are two tools named '${tool.name}'.`);
    names.add(tool.name);
  }
  if (toolChoice === "required" && tools.length === 0) refuse("tools", "tool_choice 'required' needs tools.");
  if (typeof toolChoice === "object" && !names.has(toolChoice.name)) {
    refuse("toolChoice", `tool_choice names '${toolChoice.name}', which is none of the tools.`);
  }
}

function inRange(path: string, value: number | undefined, { min, max, isWhole }: Range): void {
  if (value === undefined) return;
  const isInside = value >= min && value <= max;
  if (isInside && !(isWhole && !Number.isInteger(value))) return;
  const name = wireName(path).split(".").at(-1);
  if (!isInside) refuse(path, `${name} must be from ${min} to ${max}, not ${value}.`);
  refuse(path, `${name} must be a whole number, not ${value}.`);
}
