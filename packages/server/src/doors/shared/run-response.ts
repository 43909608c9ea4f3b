import { CoreError, type DoorKind, type OwnedResponse, type Response, type ResponseRequest } from "@plenum/core";
import type { Call, ResponseHeaders } from "./door.ts";
import { type StreamRenderer, streamResponse } from "./stream-response.ts";

export interface RunResponseOptions {
  readonly call: Call;
  readonly door: DoorKind;
  readonly request: ResponseRequest;
  /** Milliseconds after which a stream's headers leave even without output (LMSP §6). */
  readonly headersAfterMs: number;
}

/** Creates the response and streams it to the client that asked; a lost connection is told to its owner's rule. */
export async function streamToOwner(
  options: RunResponseOptions,
  makeRenderer: (owned: OwnedResponse) => StreamRenderer,
): Promise<void> {
  const { call, door, request, headersAfterMs } = options;
  const owned = await call.core.responses.create(request, call.caller, door);
  let refused: CoreError | undefined;
  await streamResponse({
    reader: owned.read(),
    renderer: makeRenderer(owned),
    responder: call.responder,
    clock: call.core.clock,
    headersAfterMs,
    refuse: (error) => {
      refused = error;
    },
    onLost: () => owned.ownerLeft(),
  });
  if (refused !== undefined) throw refused;
}

/**
 * Creates the response and waits for its end.
 * @returns undefined when the client went away.
 * @throws CoreError the problem it ended with.
 */
export async function completeForOwner(
  options: RunResponseOptions,
): Promise<{ readonly owned: OwnedResponse; readonly response: Response } | undefined> {
  const { call, door, request } = options;
  // What the native interface makes, and what goes on without its connection, is there to be watched.
  const isWatched = door === "lmsp" || request.onDisconnect === "continue";
  const delivery = isWatched ? "events" : "whole";
  const owned = await call.core.responses.create(request, call.caller, door, delivery);
  const { responder } = call;
  if (responder.isClosed) owned.ownerLeft();
  const forget = responder.onClosed(() => owned.ownerLeft());
  const response = await owned.done;
  forget();
  if (responder.isClosed) return undefined;
  if (response.problem !== undefined) {
    const { code, detail, details } = response.problem;
    // The line of the response's end says why, in words that quote nobody.
    throw new CoreError(code, detail, details, { logDetail: "The response failed." });
  }
  return { owned, response };
}

/** Answers with a JSON body. */
export function answerJson(call: Call, status: number, body: unknown, headers: ResponseHeaders = {}): void {
  answerText(call, status, JSON.stringify(body), headers);
}

/** Answers with a body that is JSON text already. */
export function answerText(call: Call, status: number, text: string, headers: ResponseHeaders = {}): void {
  if (call.responder.isClosed) return;
  call.responder.start(status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(text)),
    ...headers,
  });
  call.responder.end(text);
}
