import {
  type ClientConnection,
  type ClientLimits,
  connectCarrier,
  createCarrierPair,
  createServer,
  type OperationListener,
  type PriorityUpdate,
  type ServerConnection,
  type ServerLimits,
  type ServerOperation,
  type SessionDecision,
  type StopCause,
  type TraceContext,
} from "@plenum/nnrp";
import { type RequestEnvelope, readEnvelope } from "../envelope.ts";
import { profilePayload } from "../payload.ts";
import { operationNames, responsesEvents } from "../profile.ts";
import { deriveRequestId, EventWriter, refusalResult, type TerminalResult } from "../server/event-writer.ts";
import type { Exchange } from "./fixtures.ts";

/** One request, to be answered by a script. */
export interface Answer {
  readonly operation: ServerOperation;
  readonly envelope: RequestEnvelope;
  readonly writer: EventWriter;
  /** Fulfilled when the client or the protocol wants the operation to stop. */
  readonly stopped: Promise<StopCause>;
  /** Sends one event; undefined is none. Waits while nothing may be written. */
  partial(json: string | undefined): Promise<void>;
  end(result: TerminalResult): void;
}

export type Script = (answer: Answer) => void | Promise<void>;

export interface ServiceOptions {
  readonly server?: Partial<ServerLimits>;
  readonly client?: Partial<ClientLimits>;
}

/** A service over memory carriers that answers every readable request by a script, as a door would. */
export class ScriptedService {
  script: Script = () => {};
  decision: SessionDecision = { accept: true };
  readonly requests: RequestEnvelope[] = [];
  readonly stops: StopCause[] = [];
  readonly priorities: PriorityUpdate[] = [];
  readonly traces: TraceContext[] = [];
  /** Connections that were made. */
  connections = 0;
  readonly #options: ServiceOptions;
  readonly #open = new Set<ServerConnection>();
  readonly #server;

  constructor(options: ServiceOptions = {}) {
    this.#options = options;
    this.#server = createServer(
      {
        open: ({ connection }) => {
          this.#open.add(connection);
          return this.decision;
        },
        operation: (operation) => this.#answer(operation),
      },
      options.server && { limits: options.server },
    );
  }

  /** As `connect` of a real endpoint. */
  readonly connect = async (): Promise<ClientConnection> => {
    const [near, far] = createCarrierPair();
    this.#server.accept(far);
    this.connections += 1;
    const { client } = this.#options;
    return await connectCarrier(near, client && { limits: client });
  };

  get operations(): number {
    return this.#server.operations;
  }

  /** Ends every connection, as a service that dies. */
  dropConnections(): void {
    for (const connection of this.#open) connection.close();
    this.#open.clear();
  }

  async close(): Promise<void> {
    await this.#server.close();
  }

  #answer(operation: ServerOperation): OperationListener {
    const offered = new Set<string>([...operationNames, responsesEvents]);
    const read = readEnvelope(profilePayload(operation.payloads) ?? "", offered);
    const sent = read.ok ? read.envelope.requestId : read.requestId;
    const requestId = sent ?? deriveRequestId(operation.id, operation.frameId);
    const end = ({ partials, event, status }: TerminalResult): void => {
      for (const partial of partials) operation.partial(partial);
      operation.result({ event }, { status });
    };
    if (!read.ok) {
      end(refusalResult(read.error, requestId));
      return {};
    }
    const { envelope } = read;
    this.requests.push(envelope);
    let stop = (_cause: StopCause): void => {};
    let drain = (): void => {};
    const stopped = new Promise<StopCause>((resolve) => {
      stop = resolve;
    });
    const writer = new EventWriter({ policy: envelope.policy, requestId });
    const partial = async (json: string | undefined): Promise<void> => {
      if (json === undefined || operation.finished || operation.partial(json)) return;
      await new Promise<void>((resolve) => {
        drain = resolve;
        void stopped.then(() => resolve());
      });
    };
    void Promise.resolve(this.script({ operation, envelope, writer, stopped, partial, end }));
    return {
      stop: (cause) => {
        this.stops.push(cause);
        stop(cause);
      },
      drain: () => drain(),
      priority: (update) => this.priorities.push(update),
      traceContext: (context) => this.traces.push(context),
    };
  }
}

/** Plays what a real server sent. */
export function replay({ steps }: Exchange): Script {
  return async ({ operation, stopped }) => {
    for (const step of steps) {
      if ("partial" in step) operation.partial(step.partial);
      else if ("result" in step) operation.result({ event: step.result }, { status: step.status });
      else if ("drop" in step) operation.drop(step.drop, step.diagnostic);
      else await stopped;
    }
  };
}
