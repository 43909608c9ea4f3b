/**
 * The named values of NNRP 1 (preview4). Names and numbers of the machine contract are compared with it by a test
 * (`contracts/`); those that only the documents and the code of other implementations hold stand beside them.
 */

/** Bits of the common header's flags. This library sends none and attaches no behaviour to them. */
export const HeaderFlags = {
  none: 0,
  ackRequired: 1,
  canDrop: 2,
  stale: 4,
  eos: 8,
  retransmit: 16,
  keyframe: 32,
} as const;

export const BudgetPolicy = { none: 0, allowPartial: 1, allowStaleReuse: 2, allowDegraded: 4, allowDrop: 8 } as const;

export const LossTolerancePolicy = {
  strict: 0,
  bestEffort: 1,
  lowLatency: 2,
  fireAndForget: 3,
  inheritSession: 255,
} as const;

export const InputProfile = { unspecified: 0, changedTilesLuma: 1, denseLumaFrame: 2 } as const;

/** Profiles of sessions and payloads. In bitmaps the bit is `profile - 1`; `unspecified` has none. */
export const StandardProfile = { unspecified: 0, tensor: 1, token: 2 } as const;

/** The token profile's delta schema, which sessions are opened with. */
export const TokenSchema = { id: 0x1001, version: 3 } as const;

export const StreamSemantics = { unspecified: 0, snapshot: 1, append: 2 } as const;

export const SchemaDescriptorFlags = {
  none: 0,
  breakingChange: 1,
  compatibleUpdate: 2,
  dependencyBound: 4,
  bodySchemaPresent: 8,
} as const;

export const TileIndexMode = { denseRange: 0, rawU16: 1, deltaU16: 2, bitset: 3 } as const;

export const SubmitMode = { inline: 0, reference: 1, mixed: 2 } as const;

export const ResultClass = { complete: 0, partial: 1, staleReuse: 2, degraded: 3 } as const;

/** Kinds of payloads: one bit each, the same numbers in bitmaps and descriptors. */
export const PayloadKind = {
  tensor: 1,
  tokenChunk: 2,
  audioChunk: 4,
  videoChunk: 8,
  structuredEvent: 16,
  toolDelta: 32,
  opaqueBytes: 64,
} as const;

export const OperationState = {
  accepted: 0,
  running: 1,
  partial: 2,
  waitingTool: 3,
  superseded: 4,
  cancelled: 5,
  failed: 6,
  completed: 7,
} as const;

export const ResultTerminalState = { success: 0, cancelled: 1, dropped: 2, error: 3 } as const;

export const CancelScope = { operation: 0, subtree: 1, group: 2, session: 3 } as const;

export const FlowScopeKind = { connection: 0, session: 1, operation: 2 } as const;

export const FlowUpdateReason = { grant: 0, reduce: 1, pause: 2, resume: 3, congestion: 4 } as const;

/** Bits of FLOW_UPDATE's `flowFlags`. */
export const FlowFlags = { creditValid: 1, retryAfterValid: 2, backgroundOnly: 4, drainInFlightOnly: 8 } as const;

export const BackpressureLevel = { none: 0, soft: 1, hard: 2, paused: 3 } as const;

export const ResultHintBudgetPolicy = { none: 0, full: 1, partial: 2, staleReuse: 3, drop: 4 } as const;

export const ResultHintCongestionState = { none: 0, steady: 1, elevated: 2, saturated: 3 } as const;

export const ResultHintReason = { none: 0, queueFull: 1, serverBusy: 2, budgetExceeded: 3, superseded: 4 } as const;

export const ErrorScope = { connection: 0, session: 1, frame: 2 } as const;

export const RuntimeObjectKind = {
  unspecified: 0,
  tensor: 1,
  tokenBlock: 2,
  imageTile: 3,
  featureMap: 4,
  toolResult: 5,
  traceSegment: 6,
  opaqueBytes: 7,
  documentChunk: 8,
  audioChunk: 9,
  videoChunk: 10,
  routePlan: 11,
  cacheManifest: 12,
} as const;

/** Who caused a control message. 0x80 to 0xff are private. */
export const RuntimeRole = {
  unspecified: 0,
  client: 1,
  server: 2,
  runtime: 3,
  subagent: 4,
  tool: 5,
  scheduler: 6,
  conformanceRunner: 7,
} as const;

export const MemoryLocationHint = {
  unspecified: 0,
  hostMemory: 1,
  deviceMemory: 2,
  sharedMemory: 3,
  remoteMemory: 4,
  mmapFile: 5,
  objectStore: 6,
} as const;

export const OwnershipHint = {
  unspecified: 0,
  producerOwned: 1,
  consumerOwned: 2,
  sessionOwned: 3,
  borrowed: 4,
  transferOnRef: 5,
  releaseOnDrop: 6,
} as const;

export const ObjectReleaseReason = {
  completed: 0,
  cancelled: 1,
  expired: 2,
  replaced: 3,
  invalidated: 4,
  ownerClosed: 5,
  leaseExpired: 6,
  conformanceInjection: 7,
} as const;

export const CacheReuseScope = { operation: 0, session: 1, connection: 2, global: 3, tenant: 4, profile: 5 } as const;

export const CacheMissReason = {
  unknown: 0,
  notFound: 1,
  expired: 2,
  invalidated: 3,
  schemaMismatch: 4,
  producerUnavailable: 5,
  leaseRequired: 6,
  permissionDenied: 7,
} as const;

export const CacheInvalidateScope = { wholeSession: 0, namespace: 1, objectKind: 2, objectKey: 3 } as const;

export const CacheObjectKind = {
  cameraBlock: 1,
  tileIndexBlock: 2,
  tensorSectionTable: 3,
  codecTable: 4,
  reusableResultObject: 5,
  payloadLayoutTemplate: 6,
  promptSegment: 7,
  toolSchema: 8,
  structuredEventSchema: 9,
} as const;

export const CacheAckStatus = { accepted: 0, rejected: 1, replaced: 2 } as const;

export const CacheLeaseOwnerScope = { connection: 0, session: 1, operation: 2 } as const;

export const SessionPriorityClass = { interactive: 0, balanced: 1, background: 2 } as const;

/** Bits of SESSION_OPEN's `sessionFlags`. */
export const SessionFlags = {
  allowResume: 1,
  allowBackgroundResults: 2,
  allowCacheLeases: 4,
  allowSchemaOverride: 8,
} as const;

/** Bits of SESSION_OPEN_ACK's `sessionFlagsAck`. */
export const SessionFlagsAck = {
  resumeEnabled: 1,
  backgroundResults: 2,
  cacheLeases: 4,
  schemaOverride: 8,
  priorityDowngraded: 16,
} as const;

export const SessionStatus = { opened: 0, rejected: 1, retryLater: 2, resumed: 3 } as const;

export const SessionCloseStatus = { acknowledged: 0, draining: 1, closed: 2, rejected: 3 } as const;

export const SessionPatchAckStatus = { accepted: 0, partiallyApplied: 1, rejected: 2 } as const;

export const SessionPatchRejectReason = {
  none: 0,
  unsupportedField: 1,
  invalidRange: 2,
  unsupportedStrategy: 3,
  invalidLaneMask: 4,
  rateLimited: 5,
} as const;

export const TransportId = { unspecified: 0, quic: 1, tcp: 2, ipc: 3, websocket: 4 } as const;

export const SessionCloseReason = {
  normal: 0,
  clientShutdown: 1,
  serverShutdown: 2,
  idleTimeout: 3,
  protocolError: 4,
  authRevoked: 5,
} as const;

export const InFlightPolicy = { drain: 0, abort: 1 } as const;

/** Why something is asked for: CANCEL, ABORT, RETRY_AFTER, the recovery action of ERROR_RECOVERABLE. */
export const ReasonCode = {
  unspecified: 0,
  userCancelled: 1,
  superseded: 2,
  deadlineExpired: 3,
  budgetExceeded: 4,
  dependencyFailed: 5,
  transportClosing: 6,
  shutdown: 7,
  conformanceInjection: 8,
} as const;

/** Why an operation ended without a result: RESULT_DROP_REASON, SUPERSEDE. */
export const DropReason = {
  deadlineExpired: 1,
  superseded: 2,
  peerCancelled: 3,
  backpressure: 4,
  capabilityMismatch: 5,
  budgetExceeded: 6,
  objectInvalidated: 7,
  transportClosed: 8,
  conformanceInjection: 9,
} as const;

/** What an operation does: PROGRESS, TRACE_CONTEXT. 0x100 to 0x7fff belong to profiles. */
export const StageCode = {
  queued: 1,
  admitted: 2,
  inputReceived: 3,
  preprocessing: 4,
  executing: 5,
  waitingDependency: 6,
  producingPartial: 7,
  finalizing: 8,
  completed: 9,
  dropped: 10,
  failed: 11,
} as const;

export const PressureReason = {
  receiverQueueFull: 1,
  senderQueueFull: 2,
  memory: 3,
  bandwidth: 4,
  compute: 5,
  deadline: 6,
  fairness: 7,
  conformanceInjection: 8,
} as const;

export const CostModel = {
  bytes: 1,
  computeUnits: 2,
  tokenUnits: 3,
  memoryBytes: 4,
  bandwidthBytes: 5,
  weighted: 6,
} as const;

export const ExecutorClass = {
  localRuntime: 1,
  remoteRuntime: 2,
  gpuWorker: 3,
  cpuWorker: 4,
  subagent: 5,
  toolHost: 6,
  modelServer: 7,
  renderWorker: 8,
} as const;

export const AffinityClass = {
  sameProcess: 1,
  sameHost: 2,
  sameGpu: 3,
  sameNuma: 4,
  sameRegion: 5,
  storageLocal: 6,
} as const;

/** SESSION_OPEN_ACK and SESSION_CLOSE_ACK: `sessionErrorCode`. */
export const SessionErrorCode = {
  none: 0,
  authFailed: 0x00010001,
  profileUnsupported: 0x00010002,
  schemaUnsupported: 0x00010003,
  priorityRejected: 0x00010004,
  leasePolicyRejected: 0x00010005,
  resumeRejected: 0x00010006,
  /** Also: too many operations in flight, session id taken. */
  sessionLimitReached: 0x00010007,
} as const;

/** ERROR and ERROR_RECOVERABLE: general codes. */
export const ErrorCode = {
  unsupportedVersion: 1,
  authFailed: 2,
  invalidState: 3,
  malformedHeader: 4,
  malformedBody: 5,
  unsupportedCapability: 6,
  limitExceeded: 7,
  frameExpired: 8,
  frameCancelled: 9,
  cacheMiss: 10,
  serverBusy: 11,
  internalError: 12,
} as const;

export const CacheErrorCode = {
  cacheMiss: 0x00030001,
  leaseExpired: 0x00030002,
  versionMismatch: 0x00030003,
  dependencyInvalid: 0x00030004,
  schemaMismatch: 0x00030005,
} as const;

export const SchemaErrorCode = {
  schemaUnknown: 0x00040001,
  schemaVersionUnknown: 0x00040002,
  schemaHashConflict: 0x00040003,
  schemaIncompatible: 0x00040004,
  schemaDependencyMissing: 0x00040005,
  schemaUpdateRejected: 0x00040006,
} as const;

/** Tokens of CAPABILITY_NEGOTIATION and DEGRADE_PROFILE. */
export const capabilityTokens = [
  "cache.reference",
  "control.budget_update",
  "control.cancel_abort",
  "control.capability_costs",
  "control.credit_backpressure",
  "control.deadline_expire",
  "control.degrade_profile",
  "control.priority_update",
  "control.progress_partial",
  "control.recoverable_error",
  "control.result_drop_reason",
  "control.route_execution_hint",
  "control.supersede",
  "control.trace_context",
  "object.cost",
  "object.delta",
  "object.lifecycle",
  "object.ownership",
] as const;
