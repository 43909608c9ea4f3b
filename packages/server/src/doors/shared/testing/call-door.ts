import type { Core } from "@plenum/core";
import { dispatch } from "../dispatch.ts";
import type { Door, DoorRequest } from "../door.ts";
import { MemoryResponder } from "./memory-responder.ts";

export interface TestRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; a string goes as it is. */
  readonly body?: unknown;
}

/** A request to a door without a port; the responder fills while the promise runs. */
export function beginCall(
  door: Door,
  core: Core,
  request: TestRequest,
): { readonly responder: MemoryResponder; readonly done: Promise<void> } {
  const responder = new MemoryResponder();
  return { responder, done: dispatch(door, { core }, toDoorRequest(request), responder) };
}

/** As `beginCall`, awaited. */
export async function callDoor(door: Door, core: Core, request: TestRequest): Promise<MemoryResponder> {
  const { responder, done } = beginCall(door, core, request);
  await done;
  return responder;
}

function toDoorRequest({ method, path, headers = {}, body }: TestRequest): DoorRequest {
  const url = new URL(path, "http://127.0.0.1:7411");
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  return {
    method,
    path: url.pathname,
    query: url.searchParams,
    headers,
    body: new TextEncoder().encode(text),
    peer: "127.0.0.1",
    requestId: "req_test",
    origin: "http://127.0.0.1:7411",
  };
}
