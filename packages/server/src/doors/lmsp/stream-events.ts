import { CoreError } from "@plenum/core";
import type { Call } from "../shared/door.ts";
import { streamResponse } from "../shared/stream-response.ts";
import { createRenderer } from "./stream.ts";

/** Streams the events of a response, from the place that the request names, or says that nothing follows. */
export async function streamEvents(call: Call, id: string): Promise<void> {
  const { core, caller, responder } = call;
  const reader = await core.responses.events(id, placeOf(call), caller.principal);
  if (reader === undefined) {
    answerNothing(call);
    return;
  }
  await streamResponse({
    reader,
    renderer: createRenderer({}),
    responder,
    clock: core.clock,
    headersAfterMs: 0,
    // Its headers have left: a problem is told in the stream.
    refuse: () => {},
  });
}

/** An EventSource stops at 204 (HTML standard, server-sent events). */
export function answerNothing({ responder }: Call): void {
  responder.start(204, {});
  responder.end();
}

/**
 * Sequence after which reading starts: `Last-Event-ID`, which a browser adds when it comes back, else `?after=N`.
 * @throws CoreError invalid-request
 */
export function placeOf({ request }: Call): number {
  const sent = request.headers["last-event-id"] ?? "";
  const isQuery = sent === "";
  const text = isQuery ? (request.query.get("after") ?? "") : sent;
  if (text === "") return 0;
  if (!/^\d{1,15}$/.test(text)) {
    throw new CoreError(
      "invalid-request",
      `The place to resume after must be an event's number, not '${text.slice(0, 40)}'.`,
      {
        param: isQuery ? "after" : "Last-Event-ID",
      },
    );
  }
  return Number(text);
}
