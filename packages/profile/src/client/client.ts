import { type ClientSession, type Clock, systemClock } from "@plenum/nnrp";
import { type CapabilityDocument, readCapabilityDocument, refuseUnadvertised } from "../capabilities.ts";
import type { JsonObject } from "../json.ts";
import { responsesEvents } from "../profile.ts";
import type {
  ChatCompletion,
  ChatRequest,
  EmbeddingsAnswer,
  EmbeddingsRequest,
  ModelList,
  ResponseObject,
  ResponsesRequest,
} from "./bodies.ts";
import { type CallLimits, type CallOptions, type ProfileCall, refusedCall, startCall } from "./call.ts";
import { failedEnd } from "./call-end.ts";
import { createRequestId } from "./request-id.ts";
import { type ProfileStream, streamOf } from "./stream.ts";

export interface ProfileClientOptions {
  /** What the service advertises; requests that it does not are refused before they are sent. */
  readonly capabilities?: CapabilityDocument;
  /** For every request that brings none of its own. */
  readonly authorization?: string;
  readonly limits?: Partial<CallLimits>;
  /** @default the platform's */
  readonly clock?: Clock;
}

/**
 * The profile over one session. Nothing is sent twice; a lost session fails what is in flight.
 *
 * Every method that waits for an answer throws `ProfileRequestError`, or the signal's reason when the caller's own signal
 * fired.
 */
export interface ProfileClient {
  readonly session: ClientSession;
  /** The document in force. */
  readonly capabilities: CapabilityDocument | undefined;
  /** Asks for the document (`models.list` under `nnrp`) and keeps it. @returns undefined when the service has none there. */
  loadCapabilities(options?: CallOptions): Promise<CapabilityDocument | undefined>;
  /** Any operation, event by event, its errors as events. */
  call(operation: string, body: object, options?: CallOptions): ProfileCall;
  readonly chat: {
    create<T extends ChatRequest>(body: T, options?: CallOptions): Promise<ChatCompletion>;
    stream<T extends ChatRequest>(body: T, options?: CallOptions): ProfileStream<ChatCompletion>;
  };
  readonly responses: {
    create<T extends ResponsesRequest>(body: T, options?: CallOptions): Promise<ResponseObject>;
    stream<T extends ResponsesRequest>(body: T, options?: CallOptions): ProfileStream<ResponseObject>;
    /** Replays and follows an earlier response (extension `responses.events`). `after` is the last event that is known. */
    follow(body: { readonly id: string; readonly after?: number }, options?: CallOptions): ProfileCall;
  };
  readonly models: { list(options?: CallOptions): Promise<ModelList> };
  readonly embeddings: {
    create<T extends EmbeddingsRequest>(body: T, options?: CallOptions): Promise<EmbeddingsAnswer>;
  };
}

export const defaultCallLimits: CallLimits = { responseBytes: 64 * 1024 * 1024 };

/** A client of the profile over an open session. */
export function createProfileClient(session: ClientSession, options: ProfileClientOptions = {}): ProfileClient {
  const { authorization, clock = systemClock } = options;
  const limits = { ...defaultCallLimits, ...options.limits };
  let capabilities = options.capabilities;

  function call(operation: string, body: object, given: CallOptions = {}): ProfileCall {
    const callOptions = authorization === undefined ? given : { authorization, ...given };
    const requestId = given.requestId ?? createRequestId();
    const refusal = capabilities && refuseUnadvertised(capabilities, operation, body as JsonObject);
    if (refusal !== undefined) return refusedCall(requestId, failedEnd(refusal, "client"));
    const envelope = { operation, requestId, body: body as JsonObject, policy: callOptions };
    return startCall({ session, envelope, options: callOptions, limits, clock });
  }

  function stream<T>(
    operation: string,
    body: object,
    toBody: (body: JsonObject) => T | undefined,
    given?: CallOptions,
  ) {
    const { model } = body as { readonly model?: unknown };
    const started = call(operation, body, given);
    return streamOf({ call: started, signal: given?.signal, model: typeof model === "string" ? model : "", toBody });
  }

  const client: ProfileClient = {
    session,
    get capabilities() {
      return capabilities;
    },
    async loadCapabilities(given) {
      const result = readCapabilityDocument((await client.models.list(given))["nnrp"]);
      capabilities = result.ok ? result.document : undefined;
      return capabilities;
    },
    call,
    chat: {
      create: (body, given) => stream("chat.completions.create", { ...body, stream: false }, toChat, given).final(),
      stream: (body, given) => stream("chat.completions.create", { ...body, stream: true }, toChat, given),
    },
    responses: {
      create: (body, given) => stream("responses.create", { ...body, stream: false }, toResponse, given).final(),
      stream: (body, given) => stream("responses.create", { ...body, stream: true }, toResponse, given),
      follow: (body, given) => call(responsesEvents, body, given),
    },
    models: { list: (given) => stream("models.list", {}, toList<ModelList>, given).final() },
    embeddings: {
      create: (body, given) => stream("embeddings.create", body, toList<EmbeddingsAnswer>, given).final(),
    },
  };
  return client;
}

/** One look at the member that makes the shape; the rest is the service's word. */
function toChat(body: JsonObject): ChatCompletion | undefined {
  return Array.isArray(body["choices"]) ? (body as ChatCompletion) : undefined;
}

function toResponse(body: JsonObject): ResponseObject | undefined {
  return Array.isArray(body["output"]) ? (body as ResponseObject) : undefined;
}

function toList<T extends JsonObject>(body: JsonObject): T | undefined {
  return Array.isArray(body["data"]) ? (body as T) : undefined;
}
