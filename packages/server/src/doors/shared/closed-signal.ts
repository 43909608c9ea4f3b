import type { Responder } from "./door.ts";

/** A signal that aborts when the client goes away, for calls that take one. */
export function closedSignal(responder: Responder): AbortSignal {
  const controller = new AbortController();
  if (responder.isClosed) controller.abort();
  else responder.onClosed(() => controller.abort());
  return controller.signal;
}
