import type { DoorKind, ResponseRecord, ResponseRequest } from "@plenum/core";
import { createOnce } from "./create-once.ts";
import type { Call } from "./door.ts";
import type { AnsweredResponse } from "./run-response.ts";

/**
 * Creates a background response: it is kept when this resolves. With the idempotency key of an earlier request, that one's.
 * @param waitMs milliseconds to wait for its end; 0: none.
 * @returns it as it is then.
 * @throws CoreError as `Responses.create`.
 */
export async function createBackground(
  call: Call,
  door: DoorKind,
  request: ResponseRequest,
  waitMs: number,
): Promise<{ readonly answered: AnsweredResponse; readonly record: ResponseRecord }> {
  const { core, caller } = call;
  const { owned, earlier } = await createOnce(call, door, request, "events");
  if (owned !== undefined && waitMs > 0) await endWithin(call, owned.done, waitMs);
  const answered = owned ?? { id: earlier.id, withoutEffect: [] };
  return { answered, record: await core.responses.get(answered.id, caller.principal) };
}

/** Waits for an end, at most so long, and no longer than the client. */
async function endWithin({ core, responder }: Call, end: Promise<unknown>, limitMs: number): Promise<void> {
  const stops: (() => void)[] = [];
  const enough = new Promise<void>((resolve) => {
    stops.push(core.clock.after(limitMs, resolve), responder.onClosed(resolve));
  });
  await Promise.race([end, enough]);
  for (const stop of stops) stop();
}
