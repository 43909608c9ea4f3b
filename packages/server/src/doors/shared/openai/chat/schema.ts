import { z } from "zod";
import { list, mapping } from "../../bounded.ts";
import { reasoningEffort } from "../reasoning.ts";
import { extraShape, samplingShape } from "../sampling.ts";
import { functionShape, jsonSchema } from "../tools.ts";

/** What clients may send to chat. Null is the same as absent; unknown members are kept, to be named. */

const part = z.discriminatedUnion(
  "type",
  [
    z.looseObject({ type: z.literal("text"), text: z.string() }),
    z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
    z.looseObject({
      type: z.literal("image_url"),
      image_url: z.looseObject({ url: z.string(), detail: z.enum(["low", "high", "auto", "original"]).nullish() }),
    }),
    z.looseObject({ type: z.literal("input_audio") }),
    z.looseObject({ type: z.literal("file") }),
  ],
  "must be text, image_url or refusal",
);

const content = z.union([z.string(), list(part)], "must be a text or a list of parts");
const name = z.string().nullish();

const toolCall = z.looseObject({
  id: z.string().min(1),
  type: z.literal("function", "must be function; custom tools are not supported here").default("function"),
  function: z.looseObject({ name: z.string().min(1), arguments: z.string() }),
});

const assistant = z.looseObject({
  role: z.literal("assistant"),
  content: content.nullish(),
  refusal: z.string().nullish(),
  tool_calls: list(toolCall).nullish(),
  reasoning_content: z.string().nullish(),
  reasoning: z.string().nullish(),
  audio: z.unknown().optional(),
  function_call: z.unknown().optional(),
  name,
});

const message = z.discriminatedUnion(
  "role",
  [
    z.looseObject({ role: z.literal("system"), content, name }),
    z.looseObject({ role: z.literal("developer"), content, name }),
    z.looseObject({ role: z.literal("user"), content, name }),
    assistant,
    z.looseObject({ role: z.literal("tool"), content, tool_call_id: z.string().min(1) }),
  ],
  "must be system, developer, user, assistant or tool",
);

const responseFormat = z.discriminatedUnion(
  "type",
  [
    z.looseObject({ type: z.literal("text") }),
    z.looseObject({ type: z.literal("json_object") }),
    z.looseObject({
      type: z.literal("json_schema"),
      json_schema: z.looseObject({
        name: z.string().nullish(),
        schema: jsonSchema,
        strict: z.boolean().nullish(),
        description: z.string().nullish(),
      }),
    }),
  ],
  "must be text, json_object or json_schema",
);

const onlyFunctions = "must be function; allowed_tools, hosted and custom tools are not supported here";

const toolChoice = z.union(
  [
    z.enum(["auto", "none", "required"]),
    z.looseObject({ type: z.literal("function", onlyFunctions), function: z.looseObject({ name: z.string() }) }),
  ],
  'must be "auto", "none", "required" or a function',
);

export const chatSchema = z.looseObject({
  ...samplingShape,
  ...extraShape,
  model: z.string().min(1),
  messages: list(message, { least: 1, message: "needs at least one message" }),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().nullish(),
  max_completion_tokens: z.number().nullish(),
  max_tokens: z.number().nullish(),
  metadata: mapping(z.string()).nullish(),
  n: z.number().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning_effort: reasoningEffort,
  response_format: responseFormat.nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  tool_choice: toolChoice.nullish(),
  tools: z
    .array(
      z.looseObject({
        type: z.literal("function", "must be function; custom tools are not supported here"),
        function: z.looseObject(functionShape),
      }),
    )
    .nullish(),
});

export type ChatBody = z.output<typeof chatSchema>;
export type ChatMessage = ChatBody["messages"][number];
export type ChatPart = z.output<typeof part>;
