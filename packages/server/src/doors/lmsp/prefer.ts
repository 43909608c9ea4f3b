import type { DoorRequest } from "../shared/door.ts";

/** How a client would take a task (RFC 7240). */
export interface AsyncPreference {
  /** `respond-async`: accepted as a task. */
  readonly respondAsync: boolean;
  /** `wait=N` in milliseconds: how long the client would wait for the end of a task. @default 0 */
  readonly waitMs: number;
}

/** Longest wait, in seconds: connections are not kept open for more. */
const mostWaitS = 600;

export function readAsyncPreference({ headers }: Pick<DoorRequest, "headers">): AsyncPreference {
  const prefer = headers["prefer"] ?? "";
  const wait = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer)?.[1];
  return {
    respondAsync: /(?:^|[,;\s])respond-async\s*(?:$|[,;])/i.test(prefer),
    waitMs: Math.min(Number(wait ?? 0), mostWaitS) * 1_000,
  };
}
