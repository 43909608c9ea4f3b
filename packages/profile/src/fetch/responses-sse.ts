import type { CallEnd } from "../client/call-end.ts";
import type { PartialEvent } from "../events/event.ts";
import { isCount, isNonEmptyString, type JsonObject } from "../json.ts";
import { ChunkFilter } from "./chunk-filter.ts";
import { toOpenAIError } from "./error-response.ts";
import { ResponsesBuilder } from "./responses-builder.ts";
import { errorOfEnd, namedEvent, type SseRequest, type SseSource } from "./sse.ts";

/** Native events that end a stream. */
const lastEvents: ReadonlySet<unknown> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
]);

/**
 * A response as the events of the Responses API: the service's own where events carry them from `response.created` on,
 * else rebuilt. The last event is made from the final body, which the service need not send twice.
 */
export class ResponsesSse implements SseSource {
  readonly #filter = new ChunkFilter();
  readonly #builder: ResponsesBuilder;
  /** Whether the service sends its own events; the first one says. */
  #isExact: boolean | undefined;
  #sequence = 0;
  #hasLast = false;

  constructor(request: SseRequest) {
    this.#builder = new ResponsesBuilder(request);
  }

  take(event: PartialEvent): string {
    if (event.type === "response.diagnostics") return "";
    const chunk = this.#filter.take(event);
    if (event.type !== "response.usage") this.#isExact ??= chunk?.["type"] === "response.created";
    if (!this.#isExact) return this.#numbered(this.#builder.take(event));
    return chunk === undefined ? "" : this.#exact(chunk);
  }

  end(end: CallEnd): string {
    if (this.#hasLast) return "";
    const { event } = end;
    if (event.type === "response.completed") {
      const rest = this.#isExact ? "" : this.#numbered(this.#builder.end(event.body));
      return rest + this.#numbered([{ type: lastEventOf(event.body), response: event.body }]);
    }
    if (event.openai_chunk !== undefined) return this.#exact(event.openai_chunk);
    const error = toOpenAIError(errorOfEnd(end));
    const { code, message, param } = error;
    // Flat as the event is documented, nested as the official SDKs look for it to throw.
    return this.#numbered([{ type: "error", code, message, param, error }]);
  }

  #exact(chunk: JsonObject): string {
    const { type, sequence_number: sequence } = chunk;
    if (!isNonEmptyString(type)) return "";
    if (isCount(sequence)) this.#sequence = sequence + 1;
    if (lastEvents.has(type)) this.#hasLast = true;
    return namedEvent({ ...chunk, type });
  }

  #numbered(events: readonly (JsonObject & { readonly type: string })[]): string {
    let text = "";
    for (const { type, ...members } of events) {
      text += namedEvent({ type, sequence_number: this.#sequence, ...members });
      this.#sequence += 1;
    }
    return text;
  }
}

function lastEventOf(body: JsonObject): string {
  const { status } = body;
  return status === "incomplete" || status === "failed" ? `response.${status}` : "response.completed";
}
