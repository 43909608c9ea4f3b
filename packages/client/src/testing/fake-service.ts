import type { LmspEvent } from "../events.ts";
import type { LmspResponse } from "../responses.ts";

/** A fetch for tests that answers from a list and records what it was asked. Not part of the package's exports. */

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly signal: AbortSignal | undefined;
}

export type Answer = (request: SeenRequest) => Response | Promise<Response>;

export interface FakeService {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly seen: SeenRequest[];
}

/** Gives one answer after the other; the last one again and again. */
export function fakeService(...answers: readonly Answer[]): FakeService {
  const seen: SeenRequest[] = [];
  const fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const request: SeenRequest = {
      method: init.method ?? "GET",
      url,
      headers: Object.fromEntries(new Headers(init.headers)),
      body: typeof init.body === "string" ? JSON.parse(init.body) : undefined,
      signal: init.signal ?? undefined,
    };
    seen.push(request);
    const answer = answers[Math.min(seen.length, answers.length) - 1];
    if (answer === undefined) throw new TypeError("fetch failed");
    return answer(request);
  };
  return { fetch, seen };
}

export function response(status: LmspResponse["status"], text = ""): LmspResponse {
  return {
    id: "resp_1",
    status,
    model: "m",
    door: "lmsp",
    output:
      text === ""
        ? []
        : [
            {
              type: "message",
              id: "msg_1_0",
              role: "assistant",
              candidate: 0,
              index: 0,
              status: "completed",
              content: [{ type: "output_text", text }],
            },
          ],
    attempt: 1,
    created_at: "2026-01-01T00:00:00.000Z",
  };
}

/** A whole stream: created, a delta for each word, completed. */
export function eventsOf(...words: readonly string[]): readonly LmspEvent[] {
  const deltas = words.map((delta) => ({
    type: "response.output_text.delta" as const,
    item_id: "msg_1_0",
    index: 0,
    delta,
  }));
  const events = [
    { type: "response.created" as const, response: response("queued") },
    { type: "response.in_progress" as const, runtime: "embedded" },
    ...deltas,
    { type: "response.completed" as const, response: response("completed", words.join("")) },
  ];
  return events.map((event, place) => ({ ...event, sequence: place + 1, at_ms: place * 10 }));
}

/** Bytes of the events as the service sends them. */
export function encode(events: readonly LmspEvent[]): Uint8Array {
  const lines = events.map((event) => {
    const id = "sequence" in event ? `id: ${event.sequence}\n` : "";
    return `${id}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
  });
  return new TextEncoder().encode(lines.join(""));
}

export interface StreamOptions {
  /** How it ends after the bytes: closed, broken, or open until the request is aborted. */
  readonly end?: "close" | "break" | "hang";
  /** Bytes of each piece. */
  readonly piece?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An event stream of these bytes. */
export function stream(bytes: Uint8Array, options: StreamOptions = {}): Answer {
  const { end = "close", piece = bytes.length || 1, headers = {} } = options;
  return ({ signal }) => {
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true });
      },
      pull(controller) {
        if (sent < bytes.length) {
          controller.enqueue(bytes.slice(sent, sent + piece));
          sent += piece;
        } else if (end === "close") controller.close();
        else if (end === "break") controller.error(new TypeError("terminated"));
        else return new Promise(() => {});
        return undefined;
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream", ...headers } });
  };
}

export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return () =>
    new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json", ...headers } });
}

export function problem(code: string, status: number, members: Readonly<Record<string, unknown>> = {}): Answer {
  const value = { type: `urn:lmsp:problem:${code}`, title: code, status, detail: `It is ${code}.`, ...members };
  return json(value, status, { "content-type": "application/problem+json" });
}
