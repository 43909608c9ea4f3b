import { CoreError, type TaskExecutor } from "@plenum/core";
import { z } from "zod";
import type { ModelPuller } from "./model-puller.ts";
import { parsePullSource } from "./pull-source.ts";

/** Fields of a `model.pull` task; unknown ones are ignored. */
const requestSchema = z.object({ source: z.string(), sha256: z.string().nullish() });

/** Pulls that run at once; further ones wait. */
const pullsAtOnce = 2;

/** Task kind `model.pull` (LMSP §7): a cut one goes on with the bytes that are there. */
export function createPullExecutor(puller: ModelPuller): TaskExecutor {
  return {
    kind: "model.pull",
    concurrency: pullsAtOnce,
    accept(request) {
      const { source, sha256 } = readRequest(request);
      parsePullSource(source, sha256);
      return { source, ...(sha256 !== undefined && { sha256 }) };
    },
    run({ request }, { progress, signal }) {
      const { source, sha256 } = readRequest(request);
      return puller.pull(parsePullSource(source, sha256), { onProgress: progress, signal });
    },
  };
}

function readRequest(request: unknown): { readonly source: string; readonly sha256: string | undefined } {
  const parsed = requestSchema.safeParse(request);
  if (parsed.success) return { source: parsed.data.source, sha256: parsed.data.sha256 ?? undefined };
  const param = String(parsed.error.issues[0]?.path[0] ?? "source");
  throw new CoreError("invalid-request", `'${param}' is a text.`, { param });
}
