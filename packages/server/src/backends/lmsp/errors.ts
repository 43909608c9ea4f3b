import { LmspError, type LmspProblem } from "@plenum/client";
import { CoreError, type ProblemCode, type ProblemDetails, problemCodes } from "@plenum/core";
import { cleanMessage } from "../shared/error-facts.ts";

/** What a problem over there is here, where that is another one. Every other known code stays as it is. */
const problemHere: Readonly<Partial<Record<string, ProblemCode>>> = {
  unauthorized: "backend-error",
  forbidden: "backend-error",
  "host-refused": "backend-error",
  draining: "overloaded",
  "rate-limited": "overloaded",
  "quota-exceeded": "overloaded",
  cancelled: "backend-error",
  superseded: "backend-error",
  interrupted: "backend-unavailable",
  "events-expired": "backend-error",
  "not-found": "backend-error",
  "unsupported-operation": "backend-error",
  "method-not-allowed": "backend-error",
  internal: "backend-error",
  "idempotency-in-progress": "backend-error",
  "idempotency-mismatch": "backend-error",
};

const knownCodes: ReadonlySet<string> = new Set(problemCodes);

function isKnown(code: string): code is ProblemCode {
  return knownCodes.has(code);
}

/** A failure of the client as the core's problem. What is no failure of it, such as a signal's reason, stays as it is. */
export function lmspProblem(error: unknown): unknown {
  if (error instanceof CoreError || !(error instanceof LmspError)) return error;
  if (error.problem !== undefined) return ofProblem(error.problem, error.retryAfterMs);
  const below = rootOf(error);
  if (below instanceof CoreError) return below;
  if (error.code === "invalid-answer") {
    const detail = "The runtime's answer is not LMSP; correct its address.";
    return new CoreError("backend-error", detail, {}, { cause: error });
  }
  return new CoreError("backend-unavailable", "The runtime's connection was lost.", {}, { cause: error });
}

/** A response that ended over there without an answer. */
export function ofProblem(problem: LmspProblem, retryAfterMs = problem.retry_after_ms): CoreError {
  const told = problem.type.replace(/^urn:lmsp:problem:/, "");
  const code = problemHere[told] ?? (isKnown(told) ? told : "backend-error");
  if (told === "unauthorized" || told === "forbidden") {
    const detail = "The runtime does not accept this service's token; correct its api_key.";
    return new CoreError("backend-error", detail, { backendStatus: problem.status });
  }
  const logDetail = `The runtime answered ${/^[a-z-]{1,40}$/.test(told) ? told : "a problem"}.`;
  return new CoreError(code, sentence(problem, told), detailsOf(problem, retryAfterMs), { logDetail });
}

function sentence({ detail, title }: LmspProblem, told: string): string {
  const said = cleanMessage(String(detail ?? title ?? ""));
  if (told === "cancelled" || told === "superseded") return "The runtime gave the answer up.";
  if (said === "") return "The runtime failed without saying why.";
  return /[.!?…]$/.test(said) ? said : `${said}.`;
}

function detailsOf(problem: LmspProblem, retryAfterMs: number | undefined): ProblemDetails {
  const { param, capability, limit, requested, backend_status: status } = problem;
  return {
    ...(typeof param === "string" ? { param: param.slice(0, 200) } : {}),
    ...(typeof capability === "string" ? { capability: capability.slice(0, 40) } : {}),
    ...(typeof limit === "number" ? { limit } : {}),
    ...(typeof requested === "number" ? { requested } : {}),
    ...(typeof status === "number" && status >= 400 && status < 500 ? { backendStatus: status } : {}),
    ...(retryAfterMs === undefined || !(retryAfterMs >= 0) ? {} : { retryAfterMs }),
  };
}

function rootOf(error: Error): unknown {
  let below: unknown = error;
  for (let depth = 0; depth < 5 && below instanceof LmspError; depth += 1) below = below.cause;
  return below;
}
