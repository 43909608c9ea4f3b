import {
  CoreError,
  type DoorKind,
  inProgress,
  isTerminal,
  type OwnedResponse,
  type Response,
  type ResponseRequest,
} from "@plenum/core";
import { createOnce } from "./create-once.ts";
import type { Call, ResponseHeaders } from "./door.ts";
import { type StreamRenderer, streamResponse } from "./stream-response.ts";

export interface RunResponseOptions {
  readonly call: Call;
  readonly door: DoorKind;
  readonly request: ResponseRequest;
  /** Milliseconds after which a stream's headers leave even without output (LMSP §6). */
  readonly headersAfterMs: number;
}

/** What the headers of an answer tell of its response. */
export type AnsweredResponse = Pick<OwnedResponse, "id" | "withoutEffect">;

/**
 * Creates the response and streams it to the client that asked; a lost connection is told to its owner's rule. With the
 * idempotency key of an earlier request, it streams that one's response again.
 */
export async function streamToOwner(
  options: RunResponseOptions,
  makeRenderer: (answered: AnsweredResponse) => StreamRenderer,
): Promise<void> {
  const { call, door, request, headersAfterMs } = options;
  const { owned, earlier } = await createOnce(call, door, request, "events");
  if (earlier !== undefined) {
    await streamAgain(options, earlier, makeRenderer);
    return;
  }
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

/** The native interface lets its clients join what still runs; elsewhere that would look like two answers. */
async function streamAgain(
  { call, door, headersAfterMs }: RunResponseOptions,
  earlier: Response,
  makeRenderer: (answered: AnsweredResponse) => StreamRenderer,
): Promise<void> {
  if (door !== "lmsp" && !isTerminal(earlier)) throw inProgress();
  const { core, caller, responder } = call;
  const reader = await core.responses.events(earlier.id, 0, caller.principal);
  if (reader === undefined) throw new CoreError("events-expired", "The events are no longer kept.");
  let refused: CoreError | undefined;
  await streamResponse({
    reader,
    renderer: makeRenderer({ id: earlier.id, withoutEffect: [] }),
    responder,
    clock: core.clock,
    headersAfterMs,
    refuse: (error) => {
      refused = error;
    },
  });
  if (refused !== undefined) throw refused;
}

/**
 * Creates the response and waits for its end. With the idempotency key of an earlier request, that one's response.
 * @returns undefined when the client went away.
 * @throws CoreError the problem it ended with; idempotency-in-progress.
 */
export async function completeForOwner(
  options: RunResponseOptions,
): Promise<{ readonly answered: AnsweredResponse; readonly response: Response } | undefined> {
  const { call, door, request } = options;
  // What the native interface makes, and what goes on without its connection, is there to be watched.
  const isWatched = door === "lmsp" || request.onDisconnect === "continue";
  const delivery = isWatched ? "events" : "whole";
  const { owned, earlier } = await createOnce(call, door, request, delivery);
  if (earlier !== undefined) {
    if (!isTerminal(earlier)) throw inProgress();
    throwProblemOf(earlier);
    return { answered: { id: earlier.id, withoutEffect: [] }, response: earlier };
  }
  const { responder } = call;
  if (responder.isClosed) owned.ownerLeft();
  const forget = responder.onClosed(() => owned.ownerLeft());
  const response = await owned.done;
  forget();
  if (responder.isClosed) return undefined;
  throwProblemOf(response);
  return { answered: owned, response };
}

function throwProblemOf({ problem }: Response): void {
  if (problem === undefined) return;
  const { code, detail, details } = problem;
  // The line of the response's end says why, in words that quote nobody.
  throw new CoreError(code, detail, details, { logDetail: "The response failed." });
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
