import { z } from "zod";
import { list, mapping } from "../../bounded.ts";
import { reasoningEffort } from "../reasoning.ts";
import { extraShape, samplingShape } from "../sampling.ts";
import { functionShape, jsonSchema } from "../tools.ts";

/** What clients may send to Responses. Null is the same as absent; unknown members are kept, to be named. */

const part = z.discriminatedUnion(
  "type",
  [
    z.looseObject({ type: z.literal("input_text"), text: z.string() }),
    z.looseObject({ type: z.literal("output_text"), text: z.string() }),
    z.looseObject({ type: z.literal("text"), text: z.string() }),
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
    z.looseObject({
      type: z.literal("input_image"),
      image_url: z.string().nullish(),
      file_id: z.string().nullish(),
      detail: z.enum(["low", "high", "auto", "original"]).nullish(),
    }),
    z.looseObject({ type: z.literal("input_audio") }),
    z.looseObject({ type: z.literal("input_file") }),
  ],
  "must be input_text, input_image, output_text or refusal",
);

const content = z.union([z.string(), list(part)], "must be a text or a list of parts");

const message = z.looseObject({
  type: z.literal("message"),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content,
});

const item = z.discriminatedUnion(
  "type",
  [
    message,
    z.looseObject({
      type: z.literal("function_call"),
      call_id: z.string().min(1),
      name: z.string().min(1),
      arguments: z.string(),
    }),
    z.looseObject({ type: z.literal("function_call_output"), call_id: z.string().min(1), output: content }),
    z.looseObject({
      type: z.literal("reasoning"),
      content: list(z.looseObject({ text: z.string() })).nullish(),
      summary: list(z.looseObject({ text: z.string() })).nullish(),
    }),
    z.looseObject({ type: z.literal("item_reference"), id: z.string() }),
  ],
  "must be message, function_call, function_call_output, reasoning or item_reference",
);

/** An item without a type is a message, or, with nothing but an id, a reference. */
const typedItem = z.preprocess((value) => {
  if (!isRecord(value) || value["type"] != null) return value;
  const isReference = value["role"] === undefined && typeof value["id"] === "string";
  return { ...value, type: isReference ? "item_reference" : "message" };
}, item);

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const textFormat = z.discriminatedUnion(
  "type",
  [
    z.looseObject({ type: z.literal("text") }),
    z.looseObject({ type: z.literal("json_object") }),
    z.looseObject({
      type: z.literal("json_schema"),
      name: z.string().nullish(),
      schema: jsonSchema,
      strict: z.boolean().nullish(),
      description: z.string().nullish(),
    }),
  ],
  "must be text, json_object or json_schema",
);

const onlyFunctions = "must be function; allowed_tools, hosted and custom tools are not supported here";

const toolChoice = z.union(
  [
    z.enum(["auto", "none", "required"]),
    z.looseObject({ type: z.literal("function", onlyFunctions), name: z.string() }),
  ],
  'must be "auto", "none", "required" or a function',
);

const hint = z.unknown().optional();

export const responsesSchema = z.looseObject({
  ...samplingShape,
  ...extraShape,
  model: z.string().min(1),
  input: z.union([z.string(), list(typedItem)], "must be a text or a list of items"),
  background: z.boolean().nullish(),
  include: list(z.string()).nullish(),
  instructions: z.string().nullish(),
  max_output_tokens: z.number().nullish(),
  metadata: mapping(z.string()).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  reasoning: z
    .looseObject({ effort: reasoningEffort, summary: hint, generate_summary: hint, context: hint, mode: hint })
    .nullish(),
  store: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  text: z.looseObject({ format: textFormat.nullish(), verbosity: z.string().nullish() }).nullish(),
  tool_choice: toolChoice.nullish(),
  tools: list(z.looseObject({ type: z.string() })).nullish(),
  top_logprobs: z.number().nullish(),
  truncation: z.enum(["auto", "disabled"]).nullish(),
});

/** A function among `tools`. */
export const functionToolSchema = z.looseObject(functionShape);

export type ResponsesBody = z.output<typeof responsesSchema>;
export type ResponsesItem = Exclude<ResponsesBody["input"], string>[number];
export type ResponsesPart = z.output<typeof part>;
