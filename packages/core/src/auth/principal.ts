import { matchesPattern } from "../catalog/name-pattern.ts";
import { CoreError } from "../problems/core-error.ts";

/** `read`: catalog, own responses and tasks. `infer`. `manage`: models and runtimes. `admin`: everything and everyone's. */
export const scopes = ["read", "infer", "manage", "admin"] as const;
export type Scope = (typeof scopes)[number];

/** A person or an app: owns responses; one or more tokens speak for it. */
export interface Principal {
  readonly id: string;
  readonly scopes: ReadonlySet<Scope>;
  /** Ids that it may use; `*` stands for any text. Absent: every model. */
  readonly models?: readonly string[];
  /** Highest priority that it may ask for. Absent: 8. */
  readonly topPriority?: number;
}

/** Limits of one token, counted together under its key (LMSP §2). Absent ones do not apply. */
export interface Quota {
  /** Id of the token. */
  readonly key: string;
  /** Requests accepted in any 60 s. 0: none. */
  readonly requestsPerMinute?: number;
  /** Tokens of prompts and answers that ended in any 60 s. 0: none. */
  readonly tokensPerMinute?: number;
  /** Responses that wait or run at once. 0: none. */
  readonly concurrency?: number;
}

/** Who asks, for whom fairness counts, and within which limits. */
export interface Caller {
  readonly principal: Principal;
  readonly fairnessKey: string;
  /** Absent: the token has no limits, or there is none. */
  readonly quota?: Quota;
}

export function mayDo(principal: Principal, scope: Scope): boolean {
  return principal.scopes.has(scope) || principal.scopes.has("admin");
}

/** @throws CoreError forbidden */
export function requireScope(principal: Principal, scope: Scope): void {
  if (mayDo(principal, scope)) return;
  throw new CoreError("forbidden", `The token lacks the scope '${scope}'; use one that has it.`, { param: scope });
}

export function mayUseModel(principal: Principal, model: string): boolean {
  return principal.models?.some((pattern) => matchesPattern(pattern, model)) ?? true;
}

/** Owners and admins see a thing; for everyone else it does not exist. */
export function maySee(principal: Principal, owner: string): boolean {
  return principal.id === owner || principal.scopes.has("admin");
}
