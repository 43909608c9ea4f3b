export type {
  LmspPrincipal,
  LmspRuntime,
  LmspToken,
  MetricsHistory,
  MetricsPoint,
  NearbyService,
  NewToken,
  RuntimeRequest,
  Scope,
  TokenRequest,
  TokenRights,
} from "./admin.ts";
export type { AdminApi } from "./admin-api.ts";
export { type Client, type ClientOptions, createClient } from "./client.ts";
export {
  finalResponse,
  isTerminalEvent,
  type LmspEvent,
  type NumberedEvent,
  type ResponseProgressEvent,
  type TerminalEvent,
} from "./events.ts";
export type { ResumePolicy } from "./follow.ts";
export { type Fetch, normalizeBaseUrl } from "./http.ts";
export type {
  FunctionCallOutput,
  InputFunctionCall,
  InputItem,
  InputMessage,
  InputReasoning,
  OutputFunctionCall,
  OutputItem,
  OutputMessage,
  OutputReasoning,
  TokenLogprob,
} from "./items.ts";
export type { LmspCapabilities, LmspModel, LmspModelState, Page } from "./models.ts";
export { type ClientErrorCode, LmspError, type LmspProblem } from "./problem.ts";
export {
  type ListResponsesOptions,
  type LmspResponse,
  type LmspResponseStatus,
  type LmspUsage,
  outputText,
  type ResponseChange,
  type ResponseRequest,
} from "./responses.ts";
export type { CallOptions, EventsOptions, ResponsesApi } from "./responses-api.ts";
export type { ServiceDocument, ServiceInterface } from "./service.ts";
export type {
  ListedResponse,
  ServiceEvent,
  ServiceSnapshot,
  ServiceTopic,
  WatchOptions,
} from "./service-events.ts";
export {
  type AnyTaskEvent,
  hasEnded,
  isLastTaskEvent,
  type ListTasksOptions,
  type LmspTask,
  type TaskEvent,
  type TaskKind,
  type TaskRequest,
  type TaskState,
} from "./tasks.ts";
export type { TasksApi } from "./tasks-api.ts";
