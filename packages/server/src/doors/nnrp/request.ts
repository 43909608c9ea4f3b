import { type ResponseRequest, requestLimits, type TraceContext } from "@plenum/core";
import {
  type Budget,
  type PriorityUpdate,
  type ServerOperation,
  SessionPriorityClass,
  type TimeLimit,
} from "@plenum/nnrp";
import type { RequestPolicy } from "@plenum/profile";
import type { HeaderFields } from "../shared/request-headers.ts";

/** The core's priority of each class; a delta is added within -8 … 8. */
export const classPriorities: Readonly<Record<keyof typeof SessionPriorityClass, number>> = {
  interactive: 4,
  balanced: 0,
  background: -4,
};

const priorityOfClass: ReadonlyMap<number, number> = new Map(
  Object.entries(SessionPriorityClass).map(([name, number]) => [
    number,
    classPriorities[name as keyof typeof classPriorities],
  ]),
);

/** Higher is sooner, as in the core; classes of other numbers come after those that have a name. */
function toPriority({ priorityClass, delta = 0 }: PriorityUpdate): number {
  const { priority: most } = requestLimits;
  const wanted = (priorityOfClass.get(priorityClass) ?? -most) + delta;
  return Math.max(-most, Math.min(most, wanted));
}

/** Longest time that a client may ask for; a longer one is none. */
const maxTimeoutMs = 2_147_483_647;

/** When an operation has to have ended, in milliseconds since the epoch. */
export interface DueTimes {
  /** By DEADLINE, or an EXPIRE_AT that says what is to become of late results: then the operation is dropped. */
  readonly nativeMs: number | undefined;
  /** By `nnrp.timeout_ms`: then it ends in `response.error`. */
  readonly timeoutMs: number | undefined;
}

export function dueTimesOf(operation: ServerOperation, policy: RequestPolicy, acceptedAtMs: number): DueTimes {
  const { deadline, expireAt } = operation;
  const isBinding = expireAt?.discardStale === true || expireAt?.emitDropReason === true;
  const timeoutMs = policy.timeoutMs;
  return {
    nativeMs: earliest(instantOf(deadline), isBinding ? instantOf(expireAt) : undefined),
    timeoutMs: timeoutMs === undefined || timeoutMs > maxTimeoutMs ? undefined : acceptedAtMs + timeoutMs,
  };
}

/** Last instant that a date can hold, in milliseconds since the epoch. */
const lastInstantMs = 8_640_000_000_000_000;

/** The wire can name instants that no date holds. */
function instantOf(limit: TimeLimit | undefined): number | undefined {
  return limit === undefined ? undefined : Math.min(limit.unixMs, lastInstantMs);
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

/** What NNRP says about a request beside OpenAI's body. */
export function toHeaderFields(
  priority: PriorityUpdate,
  due: DueTimes,
  policy: RequestPolicy,
  trace: TraceContext | undefined,
): Required<Pick<HeaderFields, "priority">> & HeaderFields {
  const deadlineMs = earliest(due.nativeMs, due.timeoutMs);
  return {
    priority: toPriority(priority),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(policy.onDisconnect === undefined ? {} : { onDisconnect: policy.onDisconnect }),
    ...(trace === undefined ? {} : { trace }),
  };
}

/** The budget after an update. */
export function addBudget(tokens: number | undefined, { tokens: more = 0, increment }: Budget): number | undefined {
  if (more === 0) return tokens;
  return increment ? (tokens ?? 0) + more : more;
}

/** A budget of tokens is an upper bound of each answer. */
export function capTokens(request: ResponseRequest, budget: number | undefined): ResponseRequest {
  const { maxTokens } = request.output;
  if (budget === undefined || (maxTokens !== undefined && maxTokens <= budget)) return request;
  return { ...request, output: { ...request.output, maxTokens: budget } };
}
