import type { Sampling } from "@plenum/core";
import { defaults } from "./defaults.ts";
import { OllamaRefusal, refuseField } from "./refusal.ts";
import type { WireOptions } from "./schema.ts";

type OptionType = "integer" | "float32" | "boolean" | "array";
type NumberField = Exclude<keyof Sampling, "stop" | "logitBias" | "logprobs">;

/** What becomes of one of Ollama's options here. */
export type OptionRule = { readonly type: OptionType } & (
  | { readonly effect: "honoured"; readonly to: NumberField | "stop" | "maxTokens" }
  /** Taken and named in `X-LMSP-Without-Effect`. */
  | { readonly effect: "without_effect" }
  /** It would change the text and nothing here can do it; `neutral` is the value that asks for nothing. */
  | { readonly effect: "refused"; readonly neutral: number | boolean }
);

const honoured = (type: OptionType, to: NumberField | "stop" | "maxTokens"): OptionRule => ({
  type,
  effect: "honoured",
  to,
});
const withoutEffect = (type: OptionType): OptionRule => ({ type, effect: "without_effect" });
const refused = (type: OptionType, neutral: number | boolean): OptionRule => ({ type, effect: "refused", neutral });

/** Every option that some version of Ollama knows. `docs/reference/ollama.md` shows the same table. */
export const optionRules: Readonly<Record<string, OptionRule>> = {
  temperature: honoured("float32", "temperature"),
  top_p: honoured("float32", "topP"),
  top_k: honoured("integer", "topK"),
  min_p: honoured("float32", "minP"),
  typical_p: honoured("float32", "typicalP"),
  seed: honoured("integer", "seed"),
  stop: honoured("array", "stop"),
  presence_penalty: honoured("float32", "presencePenalty"),
  frequency_penalty: honoured("float32", "frequencyPenalty"),
  repeat_penalty: honoured("float32", "repeatPenalty"),
  repeat_last_n: honoured("integer", "repeatLastN"),
  num_predict: honoured("integer", "maxTokens"),
  num_ctx: withoutEffect("integer"),
  num_keep: withoutEffect("integer"),
  num_batch: withoutEffect("integer"),
  num_gpu: withoutEffect("integer"),
  main_gpu: withoutEffect("integer"),
  num_thread: withoutEffect("integer"),
  use_mmap: withoutEffect("boolean"),
  use_mlock: withoutEffect("boolean"),
  low_vram: withoutEffect("boolean"),
  f16_kv: withoutEffect("boolean"),
  numa: withoutEffect("boolean"),
  logits_all: withoutEffect("boolean"),
  mirostat: refused("integer", 0),
  mirostat_tau: withoutEffect("float32"),
  mirostat_eta: withoutEffect("float32"),
  tfs_z: refused("float32", 1),
  penalize_newline: refused("boolean", true),
  vocab_only: refused("boolean", false),
};

export interface ReadOptions {
  readonly sampling: Sampling;
  readonly maxTokens?: number;
  /** Options without effect on any model, as `options.<name>`. */
  readonly withoutEffect: readonly string[];
}

/** @throws OllamaRefusal for a wrong type, CoreError invalid-request for an option that can't be honoured. */
export function readOptions(options: WireOptions | null | undefined): ReadOptions {
  const read = { sampling: {} as Mutable<Sampling>, withoutEffect: [] as string[] };
  let maxTokens: number | undefined;
  for (const [name, value] of Object.entries(options ?? {})) {
    if (value === null) continue;
    const rule = Object.hasOwn(optionRules, name) ? optionRules[name] : undefined;
    if (rule === undefined || rule.effect === "without_effect") {
      if (rule !== undefined) toTyped(name, value, rule.type);
      read.withoutEffect.push(`options.${name}`);
      continue;
    }
    const typed = toTyped(name, value, rule.type);
    if (rule.effect === "refused") {
      if (typed !== rule.neutral) refuseField(`options.${name}`, "is not offered by this service; leave it out.");
      continue;
    }
    if (rule.to === "maxTokens") maxTokens = toMaxTokens(Number(typed));
    else assign(read.sampling, rule.to, typed);
  }
  return { ...read, ...(maxTokens === undefined ? {} : { maxTokens }) };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function assign(sampling: Mutable<Sampling>, to: NumberField | "stop", value: Typed): void {
  if (to === "stop") {
    if (Array.isArray(value)) sampling.stop = value;
    return;
  }
  if (typeof value !== "number") return;
  if (to === "seed" && value === defaults.randomSeed) return;
  // Ollama: every value below 1 keeps all tokens.
  sampling[to] = to === "topK" ? Math.max(0, value) : value;
}

/** 0, -1 and -2 ask for no limit, as recorded. */
function toMaxTokens(value: number): number | undefined {
  if (value > 0) return value;
  if (value >= -2) return undefined;
  refuseField("options.num_predict", `must be a number of tokens, or 0, -1 or -2 for no limit, not ${value}.`);
}

type Typed = number | boolean | readonly string[];

/** The value as Ollama reads it, with Ollama's words for a wrong type. */
function toTyped(name: string, value: unknown, type: OptionType): Typed {
  switch (type) {
    case "integer":
      if (typeof value === "number") return Math.trunc(value);
      break;
    case "float32":
      if (typeof value === "number") return value;
      break;
    case "boolean":
      if (typeof value === "boolean") return value;
      break;
    case "array":
      if (Array.isArray(value)) return value.map((entry) => toText(name, entry));
      break;
  }
  throw new OllamaRefusal(500, `option ${JSON.stringify(name)} must be of type ${type}`);
}

function toText(name: string, entry: unknown): string {
  if (typeof entry === "string") return entry;
  throw new OllamaRefusal(500, `option ${JSON.stringify(name)} must be of an array of strings`);
}
