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
export type {
  BackendEvent,
  FinishReason,
  RunProgress,
  TokenLogprob,
  Usage,
} from "./events/backend-events.ts";
export {
  isTerminalEvent,
  type ProgressEvent,
  type ResponseEvent,
  type ResponseEventType,
  type TerminalEvent,
} from "./events/response-events.ts";
export type { Backend, BackendEmbedding, BackendRequest, BackendSink } from "./ports/backend.ts";
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
export {
  type DisconnectPolicy,
  type EmbeddingRequest,
  type EmbeddingResult,
  type FunctionTool,
  type JsonSchema,
  type OutputFormat,
  type ResponseRequest,
  requestDefaults,
  type Sampling,
  type ToolChoice,
} from "./request/request.ts";
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
