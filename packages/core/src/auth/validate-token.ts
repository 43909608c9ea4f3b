import { CoreError } from "../problems/core-error.ts";
import { requestLimits } from "../request/validate.ts";
import type { TokenRights } from "./token-rights.ts";

const mostModels = 256;
const mostLetters = 128;

/** @throws CoreError invalid-request */
export function validatePrincipal(id: string, name: string): void {
  if (!new RegExp(`^[\\w.@:+-]{1,${mostLetters}}$`).test(id)) {
    refuse("id", `A principal's id has 1 to ${mostLetters} letters, digits, _ . @ : + or -.`);
  }
  validateName(name);
}

/** @throws CoreError invalid-request */
export function validateRights(rights: TokenRights, nowMs: number): void {
  const { scopes, models = [], expiresAtMs = Number.POSITIVE_INFINITY, topPriority = 0, name = "" } = rights;
  const { priority } = requestLimits;
  if (scopes.length === 0) refuse("scopes", "A token needs at least one scope: read, infer, manage or admin.");
  if (models.length > mostModels) refuse("models", `models holds at most ${mostModels} names or patterns.`);
  if (models.includes("")) refuse("models", "A model's name must not be empty.");
  if (Number.isNaN(expiresAtMs) || expiresAtMs <= nowMs) refuse("expires_at", "expires_at must be in the future.");
  if (!Number.isInteger(topPriority) || Math.abs(topPriority) > priority) {
    refuse("limits.top_priority", `top_priority must be a whole number from ${-priority} to ${priority}.`);
  }
  validateName(name);
  validateCount("limits.requests_per_minute", rights.requestsPerMinute);
  validateCount("limits.tokens_per_minute", rights.tokensPerMinute);
  validateCount("limits.concurrency", rights.concurrency);
}

function validateName(name: string): void {
  // What is shown in a terminal must not steer it.
  if (name.length > mostLetters || /\p{Cc}/u.test(name)) {
    refuse("name", `A name has at most ${mostLetters} characters and no control characters.`);
  }
}

function validateCount(param: string, count = 0): void {
  if (!Number.isSafeInteger(count) || count < 0) refuse(param, `${param} must be a whole number of 0 or more.`);
}

function refuse(param: string, detail: string): never {
  throw new CoreError("invalid-request", detail, { param });
}
