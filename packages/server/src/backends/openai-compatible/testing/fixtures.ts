/** For tests: recorded exchanges and cases as answers of a replaying upstream, and short ways to run requests. */
import { readFileSync } from "node:fs";
import { type Backend, type BackendEvent, type BackendRequest, type InputItem, requestDefaults } from "@plenum/core";
import type { ReplayAnswer, ReplayRequest, ReplayWrite } from "../../shared/testing/replay-upstream.ts";
import { jsonAnswer, startReplayUpstream } from "../../shared/testing/replay-upstream.ts";
import { createOpenaiCompatibleBackend, type OpenaiCompatibleOptions } from "../index.ts";

interface Exchange {
  readonly response: {
    readonly status: number;
    readonly body?: unknown;
    readonly lines?: readonly { readonly data?: unknown; readonly text?: string }[];
    readonly stream?: readonly { readonly line: string }[];
  };
}

export interface CaseUpstream {
  readonly status: number;
  readonly content_type: string;
  readonly writes: readonly ReplayWrite[];
  readonly end: "close" | "reset";
}

interface Case {
  readonly given: { readonly upstream?: CaseUpstream; readonly upstreams?: readonly CaseUpstream[] };
}

function read<T>(path: string): T {
  return JSON.parse(readFileSync(new URL(`../__fixtures__/${path}.json`, import.meta.url), "utf8"));
}

/** A recorded exchange, as `vllm-0.32.0/models`: its answer. */
export function recorded(path: string): ReplayAnswer {
  const { status, body, lines, stream } = read<Exchange>(path).response;
  if (body !== undefined) return jsonAnswer(body, status);
  const texts = stream?.map(({ line }) => line) ?? lines?.map(lineOf) ?? [];
  return {
    status,
    writes: texts
      .join("\n")
      .split("\n\n")
      .map((text) => ({ text: `${text}\n\n` })),
  };
}

function lineOf({ data, text }: { readonly data?: unknown; readonly text?: string }): string {
  if (data === undefined) return text ?? "";
  return `data: ${typeof data === "string" ? data : JSON.stringify(data)}`;
}

/** A case's upstreams. */
export function caseAnswers(id: string): readonly ReplayAnswer[] {
  const { upstream, upstreams } = read<Case>(`cases/${id}`).given;
  const all = upstreams ?? (upstream === undefined ? [] : [upstream]);
  return all.map(({ status, content_type, writes, end }) => ({ status, contentType: content_type, writes, end }));
}

/** An event stream of these chunks and texts, one write each. */
export function sseAnswer(chunks: readonly (object | string)[], end: ReplayAnswer["end"] = "close"): ReplayAnswer {
  const writes = chunks.map((chunk) => ({
    text: `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`,
  }));
  return { writes, end };
}

/** A chunk with one choice. */
export function chunk(delta: object, finish_reason: string | null = null): object {
  return { object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] };
}

export const modelList = { object: "list", data: [{ id: "m-tiny", object: "model", created: 1, owned_by: "x" }] };

/** Answers by path; the list of models has one model. */
export function routes(answers: Readonly<Record<string, (request: ReplayRequest) => ReplayAnswer>>) {
  return (request: ReplayRequest): ReplayAnswer => {
    const found = answers[request.path];
    if (found !== undefined) return found(request);
    if (request.path === "/v1/models") return jsonAnswer(modelList);
    return jsonAnswer({ detail: "Not Found" }, 404);
  };
}

export interface Setup {
  readonly upstream: Awaited<ReturnType<typeof startReplayUpstream>>;
  readonly backend: Backend;
  close(): Promise<void>;
}

/** A backend before a replaying upstream, after its first look. */
export async function setUp(
  answer: (request: ReplayRequest) => ReplayAnswer,
  options: Partial<OpenaiCompatibleOptions> = {},
): Promise<Setup> {
  const upstream = await startReplayUpstream(answer);
  const backend = createOpenaiCompatibleBackend({ id: "test", baseUrl: upstream.url, ...options });
  await backend.ready;
  return {
    upstream,
    backend,
    close: async () => {
      await backend.close();
      await upstream.close();
    },
  };
}

export function userSays(text: string): readonly InputItem[] {
  return [{ type: "message", role: "user", content: [{ type: "text", text }] }];
}

export function requestOf(changes: Partial<BackendRequest> = {}): BackendRequest {
  return { ...requestDefaults, model: "m-tiny", input: { kind: "items", items: userSays("Hi") }, ...changes };
}

export interface Answer {
  readonly events: readonly BackendEvent[];
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly callId?: string; readonly arguments: string }[];
  readonly finishes: readonly string[];
  /** What `respond` rejected with. */
  readonly error?: unknown;
}

/** Runs a request and puts its events together. */
export async function run(backend: Backend, changes: Partial<BackendRequest> = {}): Promise<Answer> {
  const events: BackendEvent[] = [];
  let error: unknown;
  try {
    await backend.respond(requestOf(changes), (batch) => events.push(...batch), new AbortController().signal);
  } catch (thrown) {
    error = thrown;
  }
  const joined = (type: "text" | "reasoning") =>
    events.map((event) => (event.type === type && event.candidate === 0 ? event.delta : "")).join("");
  const calls = events.flatMap((event) => (event.type === "function_call" ? [{ ...event, arguments: "" }] : []));
  for (const event of events) {
    const call = event.type === "function_call_arguments" ? calls[event.call] : undefined;
    if (call !== undefined && event.type === "function_call_arguments") call.arguments += event.delta;
  }
  return {
    events,
    text: joined("text"),
    reasoning: joined("reasoning"),
    calls: calls.map(({ name, callId, arguments: text }) => ({
      name,
      ...(callId === undefined ? {} : { callId }),
      arguments: text,
    })),
    finishes: events.flatMap((event) => (event.type === "finish" ? [event.finishReason] : [])),
    ...(error === undefined ? {} : { error }),
  };
}
