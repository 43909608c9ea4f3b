import type { BackendRequest, CoreError } from "@plenum/core";
import { dropOldestTurn } from "./drop-oldest-turn.ts";

/**
 * The request without enough of its oldest turns that it may fit; whether it does, only its tokens tell.
 * @throws the given error when nothing can go
 */
export function shorten(request: BackendRequest, error: CoreError): BackendRequest {
  const { limit, requested } = error.details;
  // Without numbers one turn goes at a time.
  const share = limit === undefined || requested === undefined ? 1 : Math.min(1, limit / requested);
  const wanted = lengthOf(request) * share;
  let shorter = dropOldestTurn(request);
  if (shorter === undefined) throw error;
  for (;;) {
    if (lengthOf(shorter) <= wanted) return shorter;
    const next = dropOldestTurn(shorter);
    if (next === undefined) return shorter;
    shorter = next;
  }
}

function lengthOf(request: BackendRequest): number {
  return JSON.stringify(request.input).length;
}
