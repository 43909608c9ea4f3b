import { type ClientSession, DropReason, type OperationEnd } from "@plenum/nnrp";
import { type Delivery, EventOrder, EventReader, type JsonObject, parseObject, profilePayload } from "@plenum/profile";

/** How a request ended, in the words of the outside suite's reports. */
export type Terminal = "success" | "error" | "cancelled";

export interface Event extends JsonObject {
  readonly type: string;
}

/** What came of one request. */
export interface Observation {
  /** As they came, and one that stands for a native end. */
  readonly events: readonly Event[];
  /** `error` where nothing ended it. */
  readonly terminal: Terminal;
  /** Broken rules of the profile, in words. */
  readonly faults: readonly string[];
}

export interface ObserveOptions {
  /** Sends CANCEL after so many events; 0: at once. @default never */
  readonly cancelAfterEvents?: number;
  /** Gives up. */
  readonly signal: AbortSignal;
}

/** Submits a request as it stands and watches it to its end. Never throws for what the service does. */
export async function observe(
  session: ClientSession,
  envelope: string,
  { cancelAfterEvents, signal }: ObserveOptions,
): Promise<Observation> {
  const watched = new Watched();
  const operation = session.submit({ body: { event: envelope }, signal });
  if (cancelAfterEvents === 0) operation.cancel();
  for await (const event of operation) {
    switch (event.type) {
      case "partial":
        watched.take(event.body, "partial");
        if (watched.events.length === cancelAfterEvents) operation.cancel();
        break;
      case "result":
      case "dropped":
      case "failed":
        watched.end(event, signal.aborted);
        break;
      default:
        break;
    }
  }
  return watched;
}

class Watched implements Observation {
  readonly events: Event[] = [];
  readonly faults: string[] = [];
  terminal: Terminal = "error";
  readonly #reader = new EventReader();
  readonly #order = new EventOrder({ isStrict: true });

  take(body: Uint8Array, delivery: Delivery): void {
    const parsed = parseObject(body);
    if (!parsed.ok) {
      this.faults.push(`An event can't be read: ${parsed.problem}.`);
      return;
    }
    const { value } = parsed;
    if (typeof value["type"] === "string") this.events.push(value as Event);
    const result = this.#reader.readValue(value);
    switch (result.kind) {
      case "invalid":
        this.faults.push(result.message);
        return;
      case "unknown":
        // Unknown ones are to be ignored, but not as an end.
        if (delivery === "terminal") this.faults.push(`RESULT_PUSH carries the unknown event ${result.type}.`);
        return;
      case "event": {
        const { event, before } = result;
        const fault = (before && this.#order.takeImplicit(before)) ?? this.#order.take(event, delivery);
        if (fault !== undefined) this.faults.push(fault.message);
        if (delivery === "partial" || fault !== undefined) return;
        if (event.type === "response.completed") this.terminal = "success";
        else if (event.type === "response.cancelled") this.terminal = "cancelled";
      }
    }
  }

  end(end: OperationEnd, wasGivenUp: boolean): void {
    switch (end.type) {
      case "result": {
        const payload = profilePayload(end.payloads);
        if (payload !== undefined) this.take(payload, "terminal");
        // An empty success; a body of another kind is told by the wire's rules.
        else if (end.body.byteLength === 0 && end.status < 400) this.terminal = "success";
        return;
      }
      case "dropped":
        this.#dropped(end.reason, end.diagnostic);
        return;
      case "failed":
        this.faults.push(
          wasGivenUp ? "The request did not end in time." : `The request did not end: ${end.error.message}.`,
        );
        return;
    }
  }

  /** Ends without an event; suites expect one that says the same. */
  #dropped(reason: number, diagnostic: string): void {
    if (reason === DropReason.peerCancelled || reason === DropReason.superseded) {
      this.terminal = "cancelled";
      const why = reason === DropReason.peerCancelled ? "peer_cancelled" : "superseded";
      this.events.push({ type: "response.cancelled", reason: why });
      return;
    }
    const message = diagnostic === "" ? `The service dropped the request (reason ${reason}).` : diagnostic;
    this.events.push({
      type: "response.error",
      error: { type: "server_error", code: `drop_reason_${reason}`, message },
    });
  }
}
