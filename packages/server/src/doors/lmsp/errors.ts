import { type CoreError, type Problem, type ProblemDetails, problems } from "@plenum/core";
import { compact } from "../shared/compact.ts";
import type { RenderedProblem } from "../shared/door.ts";

/** `application/problem+json` members of a problem (RFC 9457, LMSP §3). */
export function toProblemBody(problem: Problem, instance?: string): Record<string, unknown> {
  const { title } = problems[problem.code];
  return {
    type: `urn:lmsp:problem:${problem.code}`,
    title,
    status: statusOf(problem),
    detail: problem.detail,
    ...compact({ instance }),
    ...toMembers(problem.details),
  };
}

export function renderProblem(error: CoreError, requestId: string): RenderedProblem {
  const { retryAfterMs } = error.details;
  const status = statusOf(error);
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1000)) }),
      ...(error.code === "method-not-allowed" && error.details.reason ? { allow: error.details.reason } : {}),
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    },
    body: JSON.stringify(toProblemBody(error, requestId)),
  };
}

/** `backend-refused` answers what the backend answered. */
function statusOf({ code, details }: Problem): number {
  return code === "backend-refused" ? (details.backendStatus ?? problems[code].status) : problems[code].status;
}

function toMembers(details: ProblemDetails): Record<string, unknown> {
  return compact({
    param: details.param,
    model: details.model,
    capability: details.capability,
    limit: details.limit,
    requested: details.requested,
    retry_after_ms: details.retryAfterMs,
    backend_status: details.backendStatus,
    first_sequence: details.firstSequence,
    reason: details.reason,
  });
}
