import {
  type Core,
  CoreError,
  type DoorKind,
  isVoidResponse,
  type KeyedKind,
  type OwnedResponse,
  type Response,
  type ResponseRequest,
} from "@plenum/core";
import type { Call } from "./door.ts";
import { idempotencyKeyIn } from "./request-headers.ts";

/** Either the response that was made, or the one that a request with the same key has made before. */
export type Created =
  | { readonly owned: OwnedResponse; readonly earlier?: undefined }
  | { readonly owned?: undefined; readonly earlier: Response };

/**
 * Creates a response, once for each `Idempotency-Key` (LMSP §5).
 * @throws CoreError as `Responses.create`; idempotency-in-progress, idempotency-mismatch.
 */
export async function createOnce(
  call: Call,
  door: DoorKind,
  request: ResponseRequest,
  delivery: "events" | "whole",
): Promise<Created> {
  const { core, caller } = call;
  const made = await doOnce(call, door, responsesOf(call), (x) =>
    core.responses.create(request, caller, door, delivery, x),
  );
  return made.isFirst ? { owned: made.value } : { earlier: made.thing };
}

/** Either what was done, or the thing that a request with the same key has made before. */
export type Done<Value, Thing> =
  | { readonly isFirst: true; readonly value: Value }
  | { readonly isFirst: false; readonly thing: Thing };

/**
 * Does something once for each `Idempotency-Key`; without a key, each time.
 * @param make gets the unique part of the id that the thing must have, undefined without a key.
 * @throws CoreError as `make`, whose key is free then; idempotency-in-progress, idempotency-mismatch.
 */
export async function doOnce<Value, Thing>(
  { core, request, caller }: Call,
  door: DoorKind,
  kind: KeyedKind<Thing>,
  make: (x?: string) => Promise<Value>,
): Promise<Done<Value, Thing>> {
  const key = idempotencyKeyIn(request.headers);
  if (key === undefined) return { isFirst: true, value: await make() };
  const { path } = request;
  const body = new TextDecoder().decode(request.body);
  const use = await core.idempotency.use({ principal: caller.principal.id, door, key, path, body }, kind);
  if (!use.isFirst) return { isFirst: false, thing: use.thing };
  try {
    return { isFirst: true, value: await make(use.x) };
  } catch (error) {
    await use.release();
    throw error;
  }
}

function responsesOf({ core, caller }: Call): KeyedKind<Response> {
  return {
    prefix: "resp_",
    find: (id) => findResponse(core, id, caller.principal),
    isVoid: isVoidResponse,
  };
}

async function findResponse(
  { responses }: Core,
  id: string,
  principal: Call["caller"]["principal"],
): Promise<Response | undefined> {
  try {
    return (await responses.get(id, principal)).response;
  } catch (error) {
    if (error instanceof CoreError && error.code === "not-found") return undefined;
    throw error;
  }
}
