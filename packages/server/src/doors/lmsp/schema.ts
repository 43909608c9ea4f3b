import { z } from "zod";
import { durationForm } from "../../config/durations.ts";
import { list, mapping } from "../shared/bounded.ts";

/** What clients may send (LMSP §5). Null is the same as absent. */

/** Unknown members are ignored, or refused under `Prefer: handling=strict`. */
type ObjectOf = typeof z.object | typeof z.strictObject;

const role = z.enum(["system", "developer", "user", "assistant"]);
const jsonSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())], "must be a JSON Schema");

/** An item that does not say what it is is a message. */
function withItemType(item: unknown): unknown {
  return typeof item === "object" && item !== null && !("type" in item) ? { type: "message", ...item } : item;
}

function items(object: ObjectOf) {
  const part = z.discriminatedUnion("type", [
    object({ type: z.literal("input_text"), text: z.string() }),
    object({ type: z.literal("output_text"), text: z.string() }),
    object({
      type: z.literal("input_image"),
      image_url: z.string(),
      detail: z.enum(["low", "high", "auto"]).nullish(),
    }),
  ]);
  const message = object({
    type: z.literal("message"),
    role,
    content: z.union([z.string(), list(part)], "must be a text or a list of parts"),
  });
  const functionCall = object({
    type: z.literal("function_call"),
    call_id: z.string().min(1),
    name: z.string().min(1),
    arguments: z.string(),
  });
  const functionCallOutput = object({
    type: z.literal("function_call_output"),
    call_id: z.string().min(1),
    output: z.string(),
  });
  const reasoning = object({ type: z.literal("reasoning"), text: z.string() });
  const item = z.discriminatedUnion("type", [message, functionCall, functionCallOutput, reasoning]);
  return z.preprocess(withItemType, item);
}

function input(object: ObjectOf) {
  const completion = object({ prompt: z.string(), suffix: z.string().nullish(), raw: z.boolean().nullish() });
  return z.union([z.string(), list(items(object)), completion], "must be a text, a list of items, or a completion");
}

function sampling(object: ObjectOf) {
  const number = z.number().nullish();
  return object({
    temperature: number,
    top_p: number,
    top_k: number,
    min_p: number,
    typical_p: number,
    seed: number,
    stop: z.union([z.string(), list(z.string())]).nullish(),
    presence_penalty: number,
    frequency_penalty: number,
    repeat_penalty: number,
    repeat_last_n: number,
    logit_bias: mapping(z.number()).nullish(),
    logprobs: number,
  });
}

function output(object: ObjectOf) {
  const format = z.discriminatedUnion("type", [
    object({ type: z.literal("text") }),
    object({ type: z.literal("json") }),
    object({
      type: z.literal("json_schema"),
      name: z.string().nullish(),
      schema: jsonSchema,
      strict: z.boolean().nullish(),
    }),
  ]);
  return object({ format: format.nullish(), max_tokens: z.number().nullish() });
}

function tool(object: ObjectOf) {
  return object({
    type: z.literal("function").default("function"),
    name: z.string(),
    description: z.string().nullish(),
    parameters: jsonSchema.nullish(),
    strict: z.boolean().nullish(),
  });
}

/** Instants and durations by which a response must have ended. */
const deadline = z.iso.datetime({ offset: true }).nullish();
const timeoutMs = z.int().min(1).max(2_147_483_647).nullish();

function makeResponseSchema(object: ObjectOf) {
  return object({
    model: z.string().min(1),
    input: input(object),
    instructions: z.string().nullish(),
    tools: list(tool(object)).nullish(),
    tool_choice: z.union([z.enum(["auto", "none", "required"]), object({ name: z.string() })]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    output: output(object).nullish(),
    sampling: sampling(object).nullish(),
    reasoning: object({ effort: z.enum(["none", "minimal", "low", "medium", "high"]).nullish() }).nullish(),
    candidates: z.number().nullish(),
    previous_response_id: z.string().nullish(),
    truncation: z.enum(["none", "oldest"]).nullish(),
    keep_alive: z
      .union([z.int().min(-1), z.string().regex(durationForm)], 'must be milliseconds, -1, or a duration such as "30m"')
      .nullish(),
    metadata: mapping(z.string()).nullish(),
    store: z.boolean().nullish(),
    stream: z.boolean().nullish(),
    priority: z.number().nullish(),
    deadline,
    timeout_ms: timeoutMs,
    supersedes: z.string().nullish(),
    on_disconnect: z.enum(["cancel", "continue"]).nullish(),
    background: z.boolean().nullish(),
    runtime_options: mapping(z.record(z.string(), z.unknown())).nullish(),
  });
}

export const responseSchema = makeResponseSchema(z.object);
export const strictResponseSchema = makeResponseSchema(z.strictObject);

/** What may be changed of a response later. */
function makeChangesSchema(object: ObjectOf) {
  return object({ priority: z.number().nullish(), deadline, timeout_ms: timeoutMs });
}

export const changesSchema = makeChangesSchema(z.object);
export const strictChangesSchema = makeChangesSchema(z.strictObject);

export type WireChanges = z.output<typeof changesSchema>;
export type WireRequest = z.output<typeof responseSchema>;
export type WireItem = Extract<WireRequest["input"], readonly unknown[]>[number];
