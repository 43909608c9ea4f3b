import { CoreError } from "@plenum/core";
import { finestStepMs, type HistoryPoint, longestWindowMs, type MetricsHistory } from "../../../metrics/history.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { answerJson } from "../../shared/run-response.ts";
import { toInstant } from "../response.ts";
import { root } from "./root.ts";

/** The short history of the service (LMSP §8). */
export function metricsOperations(history: MetricsHistory): readonly Operation[] {
  return [
    {
      name: "metrics",
      method: "GET",
      path: `${root}/metrics`,
      scope: "read",
      handle: (call) => readMetrics(call, history),
    },
  ];
}

const units = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

function readMetrics(call: Call, history: MetricsHistory): void {
  const windowMs = Math.min(duration(call, "window", longestWindowMs), longestWindowMs);
  const stepMs = Math.max(finestStepMs, Math.round(duration(call, "step", finestStepMs) / finestStepMs) * finestStepMs);
  const { from, to, series, queue } = history.view(windowMs, stepMs);
  answerJson(call, 200, {
    step_ms: stepMs,
    from: toInstant(from),
    to: toInstant(to),
    series: series.map(({ model, door, points }) => ({ model, door, points: points.map(toWirePoint) })),
    queue: queue.map(({ at, ...counts }) => ({ at: toInstant(at), ...counts })),
  });
}

export function toWirePoint(point: HistoryPoint): Record<string, unknown> {
  return {
    at: toInstant(point.at),
    requests: point.requests,
    errors: point.errors,
    ttft_ms: point.ttftMs ?? null,
    inter_token_ms: point.interTokenMs ?? null,
    output_tokens: point.outputTokens,
    tokens_per_second: point.tokensPerSecond,
  };
}

/** @throws CoreError invalid-request */
function duration({ request }: Call, name: "window" | "step", otherwise: number): number {
  const text = request.query.get(name);
  if (text === null || text === "") return otherwise;
  const match = /^(\d{1,6})(s|m|h)$/.exec(text);
  const unit = match?.[2] as keyof typeof units | undefined;
  const ms = unit === undefined ? 0 : Number(match?.[1]) * units[unit];
  if (ms > 0) return ms;
  throw new CoreError("invalid-request", `\`${name}\` must be a duration such as 10s, 5m or 1h.`, { param: name });
}
