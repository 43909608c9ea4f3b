import type { ResponseRequest } from "@plenum/core";
import { z } from "zod";
import { compact } from "../compact.ts";
import { refused } from "./fields.ts";

export const reasoningEffort = z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullish();

/** `xhigh` and `max` are taken as `high`, the most that runtimes here know. */
export function toReasoning(effort: z.output<typeof reasoningEffort>): ResponseRequest["reasoning"] {
  return compact({ effort: effort === "xhigh" || effort === "max" ? "high" : effort });
}

/** How long an answer is changes its text, so only what happens anyway is taken. */
export const verbosity = refused("ask for length in the prompt; `medium` is taken", (value) => value === "medium");
