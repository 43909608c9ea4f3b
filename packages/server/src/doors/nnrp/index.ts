import type { Core, CoreError } from "@plenum/core";
import {
  createServer,
  type NnrpServer,
  type OperationListener,
  type RefusalCause,
  type ServerLimits,
  type ServerLogEvent,
  type ServerOperation,
  systemClock,
} from "@plenum/nnrp";
import { profileError, profilePayload } from "@plenum/profile";
import type { Door } from "../shared/door.ts";
import { decideSession } from "./authenticate.ts";
import { type DoorContext, type RequestFacts, readCall, refuse } from "./call.ts";
import { type Level, levelsOf, offeredOperations } from "./capabilities.ts";
import { ContinuedResponses } from "./continued.ts";
import { hold } from "./hold.ts";
import { createHttpPages } from "./http.ts";
import { run } from "./operations.ts";

export type { Level } from "./capabilities.ts";
export { capabilitiesPath, webSocketPath } from "./http.ts";

export interface NnrpDoorOptions {
  readonly core: Core;
  /** @default those of the library */
  readonly limits?: Partial<ServerLimits>;
  /** Highest compatibility level that is offered. @default 3 */
  readonly level?: Level;
  /** Ids of this service and of those behind it, its own first. @default not told */
  readonly services?: () => readonly string[];
  /** For conformance runs: submits that are no requests of the profile are held, not refused. @default false */
  readonly holdsOthers?: boolean;
  /** Told of every problem with the cause that clients don't see. @default nobody */
  readonly onProblem?: (error: CoreError, request: RequestFacts) => void;
  /** Told of each request whose token is good, with its trace. @default nobody */
  readonly onRequest?: DoorContext["onRequest"];
  /** Told of connections. @default nobody */
  readonly onEvent?: (event: ServerLogEvent) => void;
  /** Told of a mistake of this service that no request can be blamed for. @default nobody */
  readonly onFault?: (error: unknown) => void;
}

/** OpenAI's API over NNRP: the profile `openai-compatible/1` on the core. */
export interface NnrpDoor {
  /** Takes carriers: `listen` and `acceptUpgrade` of the library hand them to it. */
  readonly server: NnrpServer;
  /** Its pages over HTTP. */
  readonly pages: Door;
  /** Operations that it takes, whatever the catalog holds. */
  readonly operations: ReadonlySet<string>;
  /** Compatibility levels as the catalog is now. */
  levels(): readonly number[];
}

export function createNnrpDoor(options: NnrpDoorOptions): NnrpDoor {
  const { core, level = 3, services, holdsOthers = false, limits, onProblem, onRequest, onEvent, onFault } = options;
  const offered = offeredOperations(level);
  const context: DoorContext = {
    core,
    level,
    offered,
    continued: new ContinuedResponses(core.log),
    onProblem: onProblem ?? (() => {}),
    onRequest: onRequest ?? (() => {}),
    ...(services === undefined ? {} : { services }),
  };
  const server = createServer(
    {
      open: (request) => decideSession(core, request),
      operation: (operation) => (holdsOthers && isForeign(operation) ? hold(operation) : answer(context, operation)),
      refused,
      failed: (error) => onFault?.(error),
      ...(onEvent === undefined ? {} : { log: onEvent }),
    },
    {
      ...(limits === undefined ? {} : { limits }),
      acceptAuthBlocks: true,
      // One time for deadlines of the wire and of the core.
      clock: { ...systemClock, now: () => core.clock.now(), after: (delayMs, call) => core.clock.after(delayMs, call) },
    },
  );
  return { server, pages: createHttpPages(level), operations: offered, levels: () => levelsOf(core, level) };
}

function isForeign({ payloads }: ServerOperation): boolean {
  return profilePayload(payloads) === undefined;
}

function answer(context: DoorContext, operation: ServerOperation): OperationListener | undefined {
  const call = readCall(context, operation);
  // After what came in the same turn, right behind the submit: PRIORITY_UPDATE, DEADLINE, BUDGET_UPDATE, CANCEL.
  if (call !== undefined) setImmediate(() => void run(call));
  return call;
}

/** Milliseconds after which one more operation may have found its place. */
const retryAfterMs = 1000;

function refused(operation: ServerOperation, cause: RefusalCause): void {
  switch (cause) {
    case "duplicate-operation":
      refuse(operation, profileError("duplicate_operation_id", "The operation id is in use, or was a short time ago."));
      return;
    case "too-many-operations":
      operation.retryAfter({ retryAfterMs });
      refuse(operation, profileError("adapter_operation_limit", "The session has too many operations in flight."));
      return;
    case "closing":
      // The library drops it with transport_closed.
      return;
  }
}
