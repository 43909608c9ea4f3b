import { type Caller, CoreError, type ModelLifecycle, type TaskExecutor, type TaskRecord } from "@plenum/core";
import { z } from "zod";
import { durationForm, durationMs } from "../config/durations.ts";
import type { ModelPuller } from "./model-puller.ts";
import { parsePullSource } from "./pull-source.ts";

/** Pulls that run at once; further ones wait. */
const pullsAtOnce = 2;
/** Loads, and unloads that wait for running responses, at once: the memory budget decides what fits. */
const loadsAtOnce = 8;

/** Unknown fields are ignored, null is the same as absent. */
const pullSchema = z.object({ source: z.string("must be a text"), sha256: z.string("must be a text").nullish() });
const modelSchema = z.object({
  model: z.string("must be a model's name").min(1, "must be a model's name"),
  keep_alive: z
    .union([z.int().min(-1), z.string().regex(durationForm)], 'must be milliseconds, a duration such as "30m", or -1')
    .nullish(),
});

/** The task kinds `model.pull`, `model.load` and `model.unload` (LMSP §7). */
export function createModelExecutors(puller: ModelPuller, models: ModelLifecycle): readonly TaskExecutor[] {
  return [pullExecutor(puller), loadExecutor(models), unloadExecutor(models)];
}

/** A pull that was cut goes on with the bytes that are there. */
function pullExecutor(puller: ModelPuller): TaskExecutor {
  const read = (request: unknown) => {
    const { source, sha256 } = parse(pullSchema, request);
    return { source, sha256: sha256 ?? undefined };
  };
  return {
    kind: "model.pull",
    concurrency: pullsAtOnce,
    accept(request) {
      const { source, sha256 } = read(request);
      parsePullSource(source, sha256);
      return { source, ...(sha256 !== undefined && { sha256 }) };
    },
    run({ request }, { progress, signal }) {
      const { source, sha256 } = read(request);
      return puller.pull(parsePullSource(source, sha256), { onProgress: progress, signal });
    },
  };
}

function loadExecutor(models: ModelLifecycle): TaskExecutor {
  return {
    kind: "model.load",
    concurrency: loadsAtOnce,
    async accept(request, caller) {
      const { model, keep_alive } = parse(modelSchema, request);
      return {
        model: await models.idOf(model, caller),
        ...(keep_alive != null && { keep_alive: durationMs(keep_alive) }),
      };
    },
    async run(record, { progress, signal }) {
      const { model, keep_alive } = parse(modelSchema, record.request);
      progress({ done: 0, total: 1, unit: "items", step: `loading ${model}` });
      const options = keep_alive == null ? {} : { keepAliveMs: durationMs(keep_alive) };
      await models.load(model, options, callerOf(record), signal);
      signal.throwIfAborted();
      progress({ done: 1, total: 1, unit: "items", step: `loading ${model}` });
      return { model };
    },
  };
}

function unloadExecutor(models: ModelLifecycle): TaskExecutor {
  return {
    kind: "model.unload",
    concurrency: loadsAtOnce,
    async accept(request, caller) {
      return { model: await models.idOf(parse(modelSchema, request).model, caller) };
    },
    async run(record, { signal }) {
      const { model } = parse(modelSchema, record.request);
      await models.unload(model, callerOf(record), signal);
      return { model };
    },
  };
}

/** Whoever was let in when the task was accepted; which models it may use was looked at then. */
function callerOf({ owner, fairnessKey }: TaskRecord): Caller {
  return { principal: { id: owner, scopes: new Set(["manage"]) }, fairnessKey };
}

function parse<T>(schema: z.ZodType<T>, request: unknown): T {
  const parsed = schema.safeParse(request);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = issue?.path.join(".") ?? "";
  throw new CoreError("invalid-request", `'${param}' ${issue?.message ?? "is wrong"}.`, { param });
}
