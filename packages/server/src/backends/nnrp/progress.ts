import type { RunProgress } from "@plenum/core";
import { type Progress, StageCode } from "@plenum/nnrp";
import { countOf, isLoose, type Loose } from "../shared/openai/loose.ts";

/** Bytes of a body that is read; a longer one says nothing that is known here. */
const longestBody = 1024;

/**
 * PROGRESS in the core's words: by its body where that has LMSP's, else by its stage. Undefined for what only numbers
 * could say, which are never made up.
 */
export function toRunProgress({ stage, body }: Progress): RunProgress | undefined {
  return (body === undefined ? undefined : told(body)) ?? byStage(stage);
}

function byStage(stage: number): RunProgress | undefined {
  return stage === StageCode.waitingDependency ? { kind: "loading" } : undefined;
}

function told(body: Uint8Array): RunProgress | undefined {
  const { kind, position, expected_wait_ms: wait, done_tokens: done, total_tokens: total } = parsed(body);
  const [place, expectedWaitMs, doneTokens, totalTokens] = [position, wait, done, total].map(countOf);
  switch (kind) {
    case "queued":
      if (place === undefined) return undefined;
      return { kind, position: place, ...(expectedWaitMs === undefined ? {} : { expectedWaitMs }) };
    case "loading":
      return { kind };
    case "prompt":
      return doneTokens === undefined || totalTokens === undefined ? undefined : { kind, doneTokens, totalTokens };
    default:
      return undefined;
  }
}

function parsed(body: Uint8Array): Loose {
  if (body.length === 0 || body.length > longestBody) return {};
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return isLoose(value) && value["type"] === "response.progress" ? value : {};
  } catch {
    return {};
  }
}
