export {
  type CapabilityDocument,
  type CapabilityResult,
  createCapabilityDocument,
  type ExtensionCapability,
  type ModelCapability,
  maxServices,
  type OperationCapability,
  readCapabilityDocument,
  refuseUnadvertised,
} from "./capabilities.ts";
export type {
  ChatChoice,
  ChatCompletion,
  ChatRequest,
  EmbeddingsAnswer,
  EmbeddingsRequest,
  ModelList,
  ResponseObject,
  ResponsesRequest,
} from "./client/bodies.ts";
export type { CallLimits, CallOptions, ProfileCall } from "./client/call.ts";
export type { CallEnd } from "./client/call-end.ts";
export {
  createProfileClient,
  defaultCallLimits,
  type ProfileClient,
  type ProfileClientOptions,
} from "./client/client.ts";
export { type FailureOrigin, ProfileRequestError, type RequestFailure } from "./client/request-error.ts";
export type { ProfileStream } from "./client/stream.ts";
export { type Diagnostics, type FlowPressure, readDiagnostics, writeDiagnostics } from "./diagnostics.ts";
export {
  type EnvelopeResult,
  type RequestEnvelope,
  type RequestPolicy,
  readEnvelope,
  writeEnvelope,
} from "./envelope.ts";
export {
  errorOfStatus,
  type ProfileError,
  type ProfileErrorCode,
  profileError,
  profileErrors,
  readError,
  statusOfError,
} from "./errors.ts";
export {
  type Cancelled,
  type Completed,
  type DiagnosticsReport,
  type Failed,
  isTerminalEvent,
  type OpenAIChunk,
  type PartialEvent,
  type ProfileEvent,
  type TerminalEvent,
  type TextDelta,
  type ToolCallCompleted,
  type ToolCallDelta,
  type ToolCallEvent,
  type ToolCallFailed,
  type ToolCallStarted,
  type UsageReport,
} from "./events/event.ts";
export type { EventResult } from "./events/event-result.ts";
export { EventReader } from "./events/read-event.ts";
export type { ToolCallPlace } from "./events/write-event.ts";
export { ChunkFilter } from "./fetch/chunk-filter.ts";
export { type NnrpFetch, type NnrpFetchOptions, nnrpFetch } from "./fetch/nnrp-fetch.ts";
export type { Connect } from "./fetch/session-holder.ts";
export { type JsonObject, maxJsonLevels, type ParsedObject, parseObject } from "./json.ts";
export {
  type Delivery,
  EventOrder,
  type EventOrderOptions,
  type OrderFault,
  type OrderFaultCode,
  orderFaults,
} from "./order.ts";
export { profilePayload } from "./payload.ts";
export {
  type OperationName,
  operationLevels,
  operationNames,
  profileName,
  responsesEvents,
  schemaVersion,
} from "./profile.ts";
export {
  deriveRequestId,
  EventWriter,
  type EventWriterOptions,
  refusalResult,
  type TerminalResult,
} from "./server/event-writer.ts";
export { choiceOfItemId, toolCallItemId } from "./tool-call-item-id.ts";
export { traceFromTraceparent, traceparentOf } from "./trace.ts";
export { readUsage, toBothSpellings, toCompletionUsage, toResponsesUsage, type Usage } from "./usage.ts";
