import type { Sampling } from "@plenum/core";
import { z } from "zod";
import { durationForm, durationMs } from "../../../config/durations.ts";
import { list, mapping } from "../bounded.ts";
import { compact } from "../compact.ts";
import { type FieldTable, honoured } from "./fields.ts";

const number = z.number().nullish();

/** Fields that other servers take on these paths too, and clients send. */
export const extraShape = {
  top_k: number,
  min_p: number,
  typical_p: number,
  repeat_penalty: number,
  repetition_penalty: number,
  repeat_last_n: number,
  keep_alive: z.union([z.number(), z.string().regex(/^-/), z.string().regex(durationForm)], keepAliveForm()).nullish(),
};

function keepAliveForm(): string {
  return 'must be seconds, -1, or a duration such as "5m"';
}

export const extraFields = {
  top_k: honoured,
  min_p: honoured,
  typical_p: honoured,
  repeat_penalty: honoured,
  repetition_penalty: { effect: "honoured", note: "another name of `repeat_penalty`, which wins" },
  repeat_last_n: honoured,
  keep_alive: { effect: "honoured", note: 'seconds, `-1` for ever, or a duration such as `"5m"`' },
} as const satisfies FieldTable;

/** Sampling fields of chat and text completions. */
export const samplingShape = {
  temperature: number,
  top_p: number,
  seed: number,
  stop: z.union([z.string(), list(z.string())], "must be a text or a list of texts").nullish(),
  presence_penalty: number,
  frequency_penalty: number,
  logit_bias: mapping(z.number()).nullish(),
};

type WireSampling = z.output<z.ZodObject<typeof samplingShape & typeof extraShape>>;

/** @param logprobs alternatives wanted for each token; undefined: no log probabilities. */
export function toSampling(body: WireSampling, logprobs: number | undefined): Sampling {
  const stop = typeof body.stop === "string" ? [body.stop] : body.stop;
  return compact({
    temperature: body.temperature,
    topP: body.top_p,
    topK: body.top_k,
    minP: body.min_p,
    typicalP: body.typical_p,
    seed: body.seed,
    stop: stop?.length ? stop : undefined,
    presencePenalty: body.presence_penalty,
    frequencyPenalty: body.frequency_penalty,
    repeatPenalty: body.repeat_penalty ?? body.repetition_penalty,
    repeatLastN: body.repeat_last_n,
    logitBias: body.logit_bias,
    logprobs,
  });
}

/** Milliseconds; any negative time means for ever. */
export function toKeepAliveMs(keepAlive: number | string | null | undefined): number | undefined {
  if (keepAlive === null || keepAlive === undefined) return undefined;
  if (typeof keepAlive === "number") return keepAlive < 0 ? -1 : Math.round(keepAlive * 1000);
  return keepAlive.startsWith("-") ? -1 : durationMs(keepAlive);
}
