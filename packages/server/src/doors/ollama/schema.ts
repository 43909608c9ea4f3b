import { z } from "zod";
import { list } from "../shared/bounded.ts";

/** What Ollama's clients may send. `null` means absent everywhere, as Go's decoder has it; unknown fields pass. */

const text = z.string().nullish();
const texts = list(z.string()).nullish();
const flag = z.boolean().nullish();
/** Read by a function of its own, because several types are allowed or its errors have fixed words. */
const anything = z.unknown().optional();
const anyObject = z.looseObject({});

const named = { model: text, /** Older spelling of `model`. */ name: text };
const common = {
  ...named,
  stream: flag,
  keep_alive: anything,
  options: z.record(z.string(), z.unknown()).nullish(),
  format: anything,
  think: anything,
  truncate: flag,
  shift: flag,
  logprobs: flag,
  top_logprobs: z.int().min(0).max(20).nullish(),
};

const toolCallSchema = z.object({
  id: text,
  function: z.object({ name: z.string(), arguments: anyObject.nullish() }),
});

const messageSchema = z.object({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: text,
  thinking: text,
  images: texts,
  tool_calls: list(toolCallSchema).nullish(),
  tool_name: text,
  /** Older spelling of `tool_name`. */
  name: text,
  tool_call_id: text,
});

const toolSchema = z.object({
  function: z.object({
    name: z.string(),
    description: text,
    parameters: z.union([z.boolean(), anyObject]).nullish(),
  }),
});

/** OpenAI's words, which some clients send here too. */
const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ function: z.object({ name: z.string() }) }),
  z.object({ name: z.string() }),
]);

export const chatSchema = z.object({
  ...common,
  messages: list(messageSchema).nullish(),
  tools: list(toolSchema).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
});

export const generateSchema = z.object({
  ...common,
  prompt: text,
  suffix: text,
  system: text,
  template: text,
  context: list(z.number()).nullish(),
  raw: flag,
  images: texts,
});

export const embedSchema = z.object({
  ...named,
  input: anything,
  truncate: flag,
  dimensions: z.int().nullish(),
  keep_alive: anything,
  options: common.options,
});

/** The older `/api/embeddings`: one text. */
export const embeddingsSchema = z.object({
  ...named,
  prompt: text,
  keep_alive: anything,
  options: common.options,
});

export const showSchema = z.object({ ...named, verbose: flag });

export const pullSchema = z.object({ ...named, stream: flag });
export const removeSchema = z.object(named);
export const copySchema = z.object({ source: text, destination: text });

export type WireChat = z.infer<typeof chatSchema>;
export type WireGenerate = z.infer<typeof generateSchema>;
export type WireEmbed = z.infer<typeof embedSchema>;
export type WireMessage = z.infer<typeof messageSchema>;
export type WireToolCall = z.infer<typeof toolCallSchema>;
export type WireOptions = NonNullable<WireChat["options"]>;

/** Name of the model, empty when none was sent. */
export function nameOf(wire: {
  readonly model?: string | null | undefined;
  readonly name?: string | null | undefined;
}): string {
  return wire.model || wire.name || "";
}
