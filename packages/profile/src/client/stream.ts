import type { Completed, PartialEvent } from "../events/event.ts";
import type { JsonObject } from "../json.ts";
import { ChatAssembler } from "./assemble.ts";
import type { ProfileCall } from "./call.ts";
import type { CallEnd } from "./call-end.ts";
import { ProfileRequestError } from "./request-error.ts";

/**
 * A streamed answer. Read it once, by `for await`, or ask for `final()` alone. Leaving the loop early cancels the
 * request.
 *
 * @throws ProfileRequestError when the answer ends otherwise than by `response.completed`; the signal's reason when the
 * caller's own signal fired.
 */
export interface ProfileStream<T> extends AsyncIterable<PartialEvent | Completed> {
  readonly call: ProfileCall;
  /** Reads what nobody has read yet and returns the whole answer. */
  final(): Promise<T>;
  cancel(): void;
}

export interface StreamOptions<T> {
  readonly call: ProfileCall;
  readonly signal: AbortSignal | undefined;
  /** Model to name in an answer that has to be put together here. */
  readonly model: string;
  /** The body as its type, or undefined when it has not the shape. */
  toBody(body: JsonObject): T | undefined;
}

export function streamOf<T>(options: StreamOptions<T>): ProfileStream<T> {
  const { call, signal, model, toBody } = options;
  const assembler = new ChatAssembler();
  let body: JsonObject | undefined;

  async function* read(): AsyncGenerator<PartialEvent | Completed, void, undefined> {
    for await (const event of call) {
      assembler.take(event);
      if (event.type === "response.error" || event.type === "response.cancelled") break;
      if (event.type === "response.completed") {
        const isEmpty = Object.keys(event.body).length === 0;
        body = isEmpty ? assembler.body(call.requestId, model) : event.body;
        yield { ...event, body };
      } else yield event;
    }
    if (body === undefined) throw toThrown(call, call.end, signal);
  }

  const events = read();
  return {
    call,
    [Symbol.asyncIterator]: () => events,
    async final() {
      for await (const _event of events);
      const answer = body && toBody(body);
      if (answer === undefined) throw toThrown(call, call.end, signal);
      return answer;
    },
    cancel: () => call.cancel(),
  };
}

/** What a caller of a call that failed sees. */
function toThrown(call: ProfileCall, end: CallEnd | undefined, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted && end?.origin === "client") return signal.reason;
  return toRequestError(call, end);
}

export function toRequestError(call: ProfileCall, end: CallEnd | undefined): ProfileRequestError {
  const { requestId, retryAfterMs, diagnostics } = call;
  const error =
    end?.event.type === "response.error"
      ? end.event.error
      : {
          type: end?.event.type === "response.cancelled" ? "cancelled_error" : "server_error",
          code: end?.event.type === "response.cancelled" ? end.event.reason : "invalid_event_stream",
          message:
            end?.event.type === "response.cancelled" ? "The request was cancelled." : "The answer has not its shape.",
        };
  return new ProfileRequestError(
    {
      error,
      status: end === undefined || end.event.type === "response.completed" ? 502 : end.status,
      origin: end?.origin ?? "client",
      requestId,
      diagnostics,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    },
    end?.cause === undefined ? undefined : { cause: end.cause },
  );
}
