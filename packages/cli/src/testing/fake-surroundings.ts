import type { Fetch } from "@plenum/client";
import type { Lines, StopSignal, Surroundings } from "../surroundings.ts";

/** Surroundings for tests: what a command wrote, and a service that answers by path. */

export interface FakeSurroundings extends Surroundings {
  readonly written: { output: string; errors: string };
  /** `METHOD path` and body of each request. */
  readonly requests: { readonly line: string; readonly body: unknown; readonly authorization: string | null }[];
  /** Exit codes that the command asked for at once. */
  readonly exits: number[];
  send(signal: StopSignal): void;
}

export interface FakeOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly isTerminal?: boolean;
  /** What is piped into the command. */
  readonly input?: string;
  /** What a person types; `interrupt` is Ctrl-C. */
  readonly lines?: readonly string[];
  /** Answers by `METHOD path`; absent: no service answers. */
  readonly service?: Readonly<Record<string, (request: { readonly signal: AbortSignal | undefined }) => Response>>;
}

export function fakeSurroundings(options: FakeOptions = {}): FakeSurroundings {
  const { isTerminal = false, service } = options;
  const written = { output: "", errors: "" };
  const append = (to: "output" | "errors") => (text: string) => {
    written[to] += text;
  };
  const requests: FakeSurroundings["requests"] = [];
  const exits: number[] = [];
  const listeners = new Set<(signal: StopSignal) => void>();
  const fetch: Fetch = async (url, init) => {
    const line = `${init.method ?? "GET"} ${new URL(url).pathname}`;
    const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
    requests.push({ line, body, authorization: new Headers(init.headers).get("authorization") });
    if (service === undefined) throw new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
    return service[line]?.({ signal: init.signal ?? undefined }) ?? new Response("no such page", { status: 404 });
  };
  return {
    env: options.env ?? {},
    output: { isTerminal, write: append("output") },
    errors: { isTerminal, write: append("errors") },
    input: {
      isTerminal: options.input === undefined,
      readAll: async () => options.input ?? "",
      openLines: () => fakeLines(options.lines ?? []),
    },
    fetch,
    onSignal(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    outliveReader: () => undefined,
    exitNow: (code) => void exits.push(code),
    written,
    requests,
    exits,
    send: (signal) => {
      for (const listener of listeners) listener(signal);
    },
  };
}

function fakeLines(typed: readonly string[]): Lines {
  const rest = [...typed];
  let interrupt = () => {};
  return {
    async ask() {
      const line = rest.shift();
      if (line === "interrupt") interrupt();
      return line === "interrupt" ? undefined : line;
    },
    onInterrupt: (listener) => {
      interrupt = listener;
    },
    close() {},
  };
}

export function json(value: unknown, status = 200): () => Response {
  return () => new Response(JSON.stringify(value), { status, headers: { "content-type": "application/json" } });
}

export function problem(code: string, status: number, detail: string): () => Response {
  return json({ type: `urn:lmsp:problem:${code}`, title: code, status, detail }, status);
}

/** An event stream; `hangs`: it stays open after these events, until the request is aborted. */
export function events(
  list: readonly Readonly<Record<string, unknown>>[],
  hangs = false,
): (request: { readonly signal: AbortSignal | undefined }) => Response {
  return ({ signal }) => {
    const text = list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text));
        if (hangs) signal?.addEventListener("abort", () => controller.error(signal.reason), { once: true });
        else controller.close();
      },
    });
    const headers = { "content-type": "text/event-stream", "x-lmsp-response-id": "resp_1" };
    return new Response(body, { headers });
  };
}
