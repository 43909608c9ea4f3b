import { type Caller, type Core, CoreError, localPrincipal, requireScope, toCoreError } from "@plenum/core";
import { bearerIn } from "./bearer.ts";
import type { Call, Door, DoorRequest, Operation, Responder } from "./door.ts";
import { parseBody } from "./parse-body.ts";

export interface DispatchContext {
  readonly core: Core;
  /** Told of what went wrong, with the cause that the client does not see. */
  readonly onProblem?: (error: CoreError, request: DoorRequest) => void;
}

/** Runs one request through its door: route, token, body, operation; every error in the door's own format. */
export async function dispatch(
  door: Door,
  context: DispatchContext,
  request: DoorRequest,
  responder: Responder,
): Promise<void> {
  let forget: (() => void) | undefined;
  try {
    const { operation, rest } = findOperation(door, request);
    if (door.requiresJson) requireJson(request, operation);
    const caller = authenticate(context.core, operation, request);
    // An admin's own token may be what it ends; it is told so.
    if (operation.scope !== "admin") forget = context.core.authenticator.watch(caller, () => responder.cut());
    // Just after the start, the models may not be known yet.
    if (operation.scope !== null) await context.core.catalog.ready;
    const call: Call = {
      core: context.core,
      request,
      responder,
      caller,
      rest,
      json: (schema) => parseBody(request.body, schema),
    };
    await operation.handle(call);
  } catch (caught) {
    const error = toCoreError(caught);
    context.onProblem?.(error, request);
    answerProblem(door, error, request, responder);
  } finally {
    forget?.();
  }
}

/** Writes an error before the answer has started; afterwards only the stream's own renderer can, so it is cut. */
export function answerProblem(door: Door, error: CoreError, request: DoorRequest, responder: Responder): void {
  if (responder.isClosed) return;
  if (responder.hasStarted) {
    responder.end();
    return;
  }
  const { status, headers, body } = door.renderProblem(error, request);
  responder.start(status, headers);
  responder.end(request.method === "HEAD" ? undefined : body);
}

/** @throws CoreError unsupported-media-type */
function requireJson({ body, headers }: DoorRequest, { mediaTypes }: Operation): void {
  const contentType = headers["content-type"];
  if (contentType === "application/json") return;
  const mediaType = contentType?.split(";")[0]?.trim().toLowerCase();
  if (body.length === 0 || !mediaType || /^application\/(.+\+)?json$/.test(mediaType)) return;
  if (mediaTypes?.includes(mediaType)) return;
  throw new CoreError("unsupported-media-type", `Send application/json, not ${mediaType}.`, { param: "content-type" });
}

/** HEAD is GET without the body, which the listener leaves out (RFC 9110 §9.3.2). */
function isHeadOf(operation: Operation, request: DoorRequest): boolean {
  return request.method === "HEAD" && operation.method === "GET";
}

interface Match {
  readonly operation: Operation;
  readonly rest: string;
}

function findOperation(door: Door, request: DoorRequest): Match {
  const allowed: string[] = [];
  for (const operation of door.operations) {
    const rest = matchPath(operation.path, request.path);
    if (rest === undefined) continue;
    if (operation.method === request.method || isHeadOf(operation, request)) return { operation, rest };
    allowed.push(operation.method);
  }
  if (allowed.length > 0) {
    const methods = [...new Set(allowed)].join(", ");
    throw new CoreError("method-not-allowed", `${request.path} takes ${methods}, not ${request.method}.`, {
      reason: methods,
    });
  }
  throw new CoreError("unsupported-operation", `There is no ${request.method} ${request.path} here.`);
}

/** @returns what stands for the `*` (decoded), empty for an exact match, undefined when the path does not match. */
function matchPath(pattern: string, path: string): string | undefined {
  const star = pattern.indexOf("*");
  if (star < 0) return path === pattern ? "" : undefined;
  const before = pattern.slice(0, star);
  const after = pattern.slice(star + 1);
  if (path.length <= before.length + after.length || !path.startsWith(before) || !path.endsWith(after)) {
    return undefined;
  }
  try {
    return decodeURIComponent(path.slice(before.length, path.length - after.length));
  } catch {
    return undefined;
  }
}

function authenticate(core: Core, operation: Operation, request: DoorRequest): Caller {
  if (operation.scope === null) {
    return { principal: { ...localPrincipal, scopes: new Set() }, fairnessKey: `peer:${request.peer}` };
  }
  const caller = core.authenticator.authenticate(bearerIn(request.headers["authorization"]), request.peer);
  requireScope(caller.principal, operation.scope);
  return caller;
}
