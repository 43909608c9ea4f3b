import { type Carrier, type ClientConnection, type ClientSession, connectCarrier, NnrpError } from "@plenum/nnrp";
import { type Observation, type ObserveOptions, observe } from "./observe.ts";
import { type RecordedPacket, Recording } from "./recording.ts";
import { checkWire } from "./wire-rules.ts";

/** The service under test. */
export interface Target {
  /** Opens a carrier to it, without a word on it. @throws NnrpError */
  open(signal: AbortSignal): Promise<Carrier>;
  /** A bearer token for every request. */
  readonly token?: string;
  /** Longest time of one case, in milliseconds. */
  readonly timeoutMs: number;
}

/** A connection with one session, while a case looks at it. */
export interface Visit {
  readonly connection: ClientConnection;
  /** The recorded carrier, for what no client would send. */
  readonly carrier: Carrier;
  readonly session: ClientSession;
  /** Fires when the case takes too long. */
  readonly signal: AbortSignal;
  ask(envelope: string, options?: Omit<ObserveOptions, "signal">): Promise<Observation>;
  /** Says that something is wrong. */
  report(problem: string): void;
}

/** What a case came to. */
export interface Judgement {
  readonly observation: Observation;
  /** Empty: passed. */
  readonly problems: readonly string[];
  readonly packets: readonly RecordedPacket[];
}

const nothing: Observation = { events: [], terminal: "error", faults: [] };

/**
 * Opens a connection and a session for one case, and closes them in order; then looks at every packet. Never throws for
 * what the service does.
 * @throws NnrpError `connect-failed` when nobody is there.
 */
export async function visit(target: Target, work: (visit: Visit) => Promise<Observation>): Promise<Judgement> {
  const signal = AbortSignal.timeout(target.timeoutMs);
  const recording = new Recording(target.token === undefined ? {} : { secret: target.token });
  const carrier = recording.watch(await target.open(signal));
  const problems: string[] = [];
  let observation = nothing;
  try {
    const connection = await connectCarrier(carrier, { signal });
    try {
      const session = await connection.openSession({ signal });
      const ask: Visit["ask"] = (envelope, options) => observe(session, envelope, { ...options, signal });
      observation = await work({
        connection,
        carrier,
        session,
        signal,
        ask,
        report: (problem) => void problems.push(problem),
      });
      await session.close();
    } finally {
      await connection.close();
    }
  } catch (error) {
    if (!(error instanceof NnrpError)) throw error;
    problems.push(`The connection failed: ${error.message}.`);
  } finally {
    carrier.destroy();
  }
  const wire = checkWire(recording.packets).map((fault) => `On the wire: ${fault}.`);
  return { observation, problems: [...problems, ...observation.faults, ...wire], packets: recording.packets };
}
