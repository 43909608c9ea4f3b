export { Authenticator, localPrincipal } from "./auth/authenticator.ts";
export {
  type Caller,
  mayDo,
  mayUseModel,
  type Principal,
  type Quota,
  requireScope,
  type Scope,
  scopes,
} from "./auth/principal.ts";
export type { TokenRights } from "./auth/token-rights.ts";
export { type NewToken, Tokens } from "./auth/tokens.ts";
export { Catalog, type CatalogNames, type ResolvedModel, type Route } from "./catalog/catalog.ts";
export { type CatalogChanges, catalogChanges } from "./catalog/changes.ts";
export type {
  BackendModel,
  Capabilities,
  Capability,
  CatalogModel,
  ModelDetails,
  ModelLimits,
  ModelRuntime,
  ModelState,
  ParameterEffect,
} from "./catalog/model.ts";
export { capabilityNames } from "./catalog/model.ts";
export { ModelLifecycle } from "./catalog/model-lifecycle.ts";
export { matchesPattern } from "./catalog/name-pattern.ts";
export { findUsable, usableModels } from "./catalog/usable-models.ts";
export { type Core, type CoreOptions, createCore } from "./core.ts";
export { detach } from "./detach.ts";
export type { BackendEvent, FinishReason, RunProgress, TokenLogprob, Usage } from "./events/backend-events.ts";
export {
  isTerminalEvent,
  type ProgressEvent,
  type ResponseEvent,
  type ResponseEventType,
  type TerminalEvent,
} from "./events/response-events.ts";
export { MemoryBus } from "./memory/bus.ts";
export { systemClock } from "./memory/clock.ts";
export { MemoryEventLog } from "./memory/event-log.ts";
export { randomIds } from "./memory/ids.ts";
export { MemoryLeases } from "./memory/leases.ts";
export { matchesQuery } from "./memory/matches-query.ts";
export { comparePlaces, cursorOf, newestFirst, readCursor } from "./memory/newest-first.ts";
export { MemoryQuotaStore } from "./memory/quota-store.ts";
export { createMemoryStorage } from "./memory/storage.ts";
export type { Backend, BackendEmbedding, BackendRequest, BackendSink, RuntimeHealth } from "./ports/backend.ts";
export type { Bus, BusTopic } from "./ports/bus.ts";
export type { Clock } from "./ports/clock.ts";
export type { Sha256 } from "./ports/digest.ts";
export type { EventLog, EventLogLimits, LogEntry, LogExtent, LogReader } from "./ports/event-log.ts";
export type { IdempotencyRecord, IdempotencyStore } from "./ports/idempotency-store.ts";
export type { Ids } from "./ports/ids.ts";
export type { Lease, Leases } from "./ports/lease.ts";
export { emptyNeighbourhood, type NearbyService, type Neighbourhood } from "./ports/nearby.ts";
export type { EmbeddingEnd, Observer } from "./ports/observer.ts";
export type { QuotaRefusal, QuotaStore } from "./ports/quota-store.ts";
export type { SettingsStore } from "./ports/settings-store.ts";
export type { Storage } from "./ports/storage.ts";
export type { Page, ResponseQuery, ResponseRecord, Store } from "./ports/store.ts";
export type {
  BatchLine,
  TaskEvent,
  TaskKind,
  TaskProgress,
  TaskQuery,
  TaskRecord,
  TaskState,
  TaskStore,
} from "./ports/task-store.ts";
export type { PrincipalRecord, TokenRecord, TokenStore } from "./ports/token-store.ts";
export { CoreError, type Problem, type ProblemDetails, toCoreError } from "./problems/core-error.ts";
export { type ProblemCode, type ProblemDefinition, problemCodes, problems, type Retry } from "./problems/table.ts";
export type {
  ContentPart,
  FunctionCallItem,
  FunctionCallOutputItem,
  ImagePart,
  InputItem,
  MessageItem,
  ReasoningItem,
  ResponseInput,
  Role,
  TextPart,
} from "./request/items.ts";
export { type GivenRequest, makeRequest } from "./request/make-request.ts";
export {
  type DisconnectPolicy,
  type EmbeddingRequest,
  type EmbeddingResult,
  type FunctionTool,
  type JsonSchema,
  type OutputFormat,
  type ResponseChanges,
  type ResponseRequest,
  requestDefaults,
  type Sampling,
  type ToolChoice,
  type TraceContext,
} from "./request/request.ts";
export { requestLimits, samplingRanges } from "./request/validate.ts";
export { wireName } from "./request/wire-name.ts";
export { Idempotency, inProgress, isVoidResponse, type KeyedKind } from "./responses/idempotency.ts";
export {
  type CandidateFinish,
  type DoorKind,
  isTerminal,
  type OutputFunctionCall,
  type OutputItem,
  type OutputMessage,
  type OutputReasoning,
  type Response,
  type ResponseStatus,
  type Timings,
} from "./responses/response.ts";
export { type OwnedResponse, uniquePart } from "./responses/responses.ts";
export { Nearby, type NearbyEntry, type NearbyState } from "./runtimes/nearby.ts";
export type { RuntimeDescription, RuntimeSettings, RuntimeSource, RuntimeStatus } from "./runtimes/runtime.ts";
export { Runtimes } from "./runtimes/runtimes.ts";
export {
  type BatchInput,
  type BatchOutput,
  type BatchRequest,
  createBatchExecutor,
  failedLine,
} from "./tasks/batch.ts";
export type { TaskContext, TaskExecutor } from "./tasks/executor.ts";
export type { TaskListQuery } from "./tasks/list-tasks.ts";
export type { Task } from "./tasks/task.ts";
export type { TaskReader } from "./tasks/task-reader.ts";
export type { Tasks } from "./tasks/tasks.ts";
