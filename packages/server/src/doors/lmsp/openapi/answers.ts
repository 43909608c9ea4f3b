import { problemCodes, scopes } from "@plenum/core";
import { z } from "zod";

/** What the native interface answers, as schemas: for the OpenAPI document, and for tests of what is really sent. */

const instant = z.iso.datetime();
const count = z.int().min(0);
const ms = z.number().min(0);

export const problem = z
  .looseObject({
    type: z.enum(problemCodes.map((code) => `urn:lmsp:problem:${code}`)),
    title: z.string(),
    status: z.int().min(400).max(599),
    detail: z.string(),
    instance: z.string().optional().describe("Id of the request."),
    param: z.string().optional().describe("Field of the request that is wrong."),
    retry_after_ms: z.number().optional(),
  })
  .describe("RFC 9457, LMSP §3");

const logprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.int()),
  top_logprobs: z.array(z.object({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()) })),
});

const itemBase = {
  id: z.string(),
  candidate: count,
  index: count,
  status: z.enum(["in_progress", "completed", "incomplete"]),
};

export const outputItem = z.discriminatedUnion("type", [
  z.object({
    ...itemBase,
    type: z.literal("message"),
    role: z.literal("assistant"),
    content: z.array(
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("output_text"), text: z.string(), logprobs: z.array(logprob).optional() }),
        z.object({ type: z.literal("refusal"), refusal: z.string() }),
      ]),
    ),
  }),
  z.object({ ...itemBase, type: z.literal("reasoning"), text: z.string() }),
  z.object({
    ...itemBase,
    type: z.literal("function_call"),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string().describe("JSON text."),
  }),
]);

export const response = z
  .object({
    id: z.string(),
    object: z.literal("response"),
    status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    model: z.string(),
    door: z.enum(["lmsp", "openai", "ollama", "nnrp"]),
    runtime: z.string().optional(),
    background: z.boolean().optional(),
    output: z.array(outputItem),
    usage: z
      .object({
        input_tokens: count,
        output_tokens: count,
        total_tokens: count,
        cached_input_tokens: count,
        reasoning_tokens: count,
      })
      .optional(),
    timings: z
      .object({ queued: ms, load: ms, prompt: ms, generation: ms, first_token: ms, total: ms })
      .partial()
      .describe("Milliseconds; absent: that phase was not reached."),
    incomplete_reason: z.string().optional(),
    problem: problem.optional(),
    attempt: z.int().min(1),
    priority: z.int().min(-8).max(8),
    deadline: instant.optional(),
    created_at: instant,
    started_at: instant.optional(),
    finished_at: instant.optional(),
    metadata: z.record(z.string(), z.string()),
  })
  .describe("LMSP §5");

export const model = z
  .object({
    id: z.string(),
    name: z.string(),
    aliases: z.array(z.string()),
    state: z.enum(["available", "loading", "loaded", "unavailable"]),
    state_detail: z.string().optional(),
    capabilities: z.record(z.string(), z.boolean()),
    emulated: z.array(z.string()),
    limits: z.object({
      context_tokens: count.nullable(),
      output_tokens: count.nullable(),
      embedding_dimensions: count.nullable(),
      parallel: z.int().min(1),
    }),
    details: z.looseObject({}),
    parameters: z.record(z.string(), z.enum(["honoured", "emulated", "refused", "without_effect"])),
    runtimes: z.array(
      z.object({
        id: z.string(),
        kind: z.string(),
        state: z.string(),
        model: z.string().optional(),
        loaded: z.boolean(),
        memory_bytes: count.optional(),
        via: z.array(z.string()).optional(),
      }),
    ),
    created_at: instant.optional(),
  })
  .describe("LMSP §4");

export const task = z
  .object({
    id: z.string(),
    object: z.literal("task"),
    kind: z.enum(["response", "model.pull", "model.load", "model.unload", "batch"]),
    state: z.enum(["queued", "running", "succeeded", "failed", "cancelled"]),
    progress: z
      .object({
        done: count,
        total: count.optional(),
        unit: z.enum(["bytes", "items", "tokens"]),
        step: z.string().optional(),
      })
      .optional(),
    request: z.unknown().optional(),
    result: z.unknown().optional(),
    problem: problem.optional(),
    attempt: z.int().min(1),
    created_at: instant,
    started_at: instant.optional(),
    finished_at: instant.optional(),
  })
  .describe("LMSP §7");

export const principal = z.object({
  id: z.string(),
  object: z.literal("principal"),
  name: z.string().optional(),
  created_at: instant.optional(),
});

export const token = z.object({
  id: z.string(),
  object: z.literal("token"),
  principal: z.string(),
  name: z.string().optional(),
  scopes: z.array(z.enum(scopes)),
  models: z.array(z.string()).optional(),
  expires_at: instant.optional(),
  limits: z
    .object({
      requests_per_minute: count,
      tokens_per_minute: count,
      concurrency: count,
      top_priority: z.int().min(-8).max(8),
    })
    .partial(),
  created_at: instant.optional(),
  last_used_at: instant.optional(),
});

export const newToken = token.extend({ token: z.string().describe("Told only now.") });

export const runtime = z.object({
  id: z.string(),
  kind: z.string(),
  url: z.string().optional(),
  state: z.enum(["healthy", "degraded", "unavailable"]),
  reason: z.string().optional(),
  models: z.array(z.string()),
  running: count,
  capacity: count.optional(),
  source: z.enum(["config", "found", "added", "approved"]),
});

export const nearby = z.object({
  id: z.string(),
  name: z.string(),
  url: z.string(),
  version: z.string(),
  auth: z.enum(["none", "bearer"]),
  kinds: z.array(z.string()),
  addresses: z.array(z.string()),
  seen_at: instant,
  state: z.enum(["seen", "approved", "gone"]),
});

const percentiles = z.object({ p50: ms, p95: ms }).nullable();

export const metrics = z.object({
  step_ms: z.int().min(1),
  from: instant,
  to: instant,
  series: z.array(
    z.object({
      model: z.string(),
      door: z.string(),
      points: z.array(
        z.object({
          at: instant,
          requests: count,
          errors: z.record(z.string(), count),
          ttft_ms: percentiles,
          inter_token_ms: percentiles,
          output_tokens: count,
          tokens_per_second: ms,
        }),
      ),
    }),
  ),
  queue: z.array(z.object({ at: instant, queued: count, running: count })),
});

export const service = z
  .object({
    lmsp_version: z.string(),
    service: z.object({
      id: z.string(),
      instance: z.string(),
      name: z.string(),
      software: z.object({ name: z.string(), version: z.string() }),
    }),
    auth: z.object({ required: z.boolean(), schemes: z.array(z.string()) }),
    interfaces: z.array(z.looseObject({ kind: z.string(), url: z.string() })),
    features: z.looseObject({}),
    limits: z.looseObject({}),
  })
  .describe("LMSP §1");

/** A list as every list is. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({ data: z.array(item), next_cursor: z.string().nullable() });
}
