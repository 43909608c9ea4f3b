import type { ResponseRequest } from "../request/request.ts";
import type { DoorKind, Response, ResponseStatus } from "../responses/response.ts";

/** Request, owner, fairness key, epoch and Response, kept together (LMSP §5). */
export interface ResponseRecord {
  readonly request: ResponseRequest;
  /** Principal's id. */
  readonly owner: string;
  readonly fairnessKey: string;
  readonly epoch: number;
  readonly response: Response;
  /** Set before the notification, so that a cancel can't be lost. */
  readonly cancelRequested?: string;
}

export interface ResponseQuery {
  /** Absent: everyone's. */
  readonly owner?: string;
  readonly door?: DoorKind;
  readonly model?: string;
  readonly status?: ResponseStatus;
  /** True: only those that were asked for as background responses. */
  readonly background?: boolean;
  /** Most entries, 1 … 1000. */
  readonly limit: number;
  /** A page's `nextCursor`, `<createdAt>-<id>` of its last entry: what is older follows, newest first. */
  readonly cursor?: string;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor?: string;
}

/**
 * Where responses are kept. A durable one keeps the whole record where `request.store` is true, else only id, owner, door,
 * model, times and status (LMSP §5). Every implementation runs `testStore`.
 */
export interface Store {
  /** Readable at once; when the promise resolves it is as safe as this store makes it. */
  put(record: ResponseRecord): Promise<void>;
  get(id: string): Promise<ResponseRecord | undefined>;
  /** @throws CoreError invalid-request for a cursor that no page gave. */
  list(query: ResponseQuery): Promise<Page<ResponseRecord>>;
  /** @returns false when there is no such record. */
  requestCancel(id: string, reason: string): Promise<boolean>;
  delete(id: string): Promise<void>;
  /** Records that an earlier process left queued or in progress, oldest first: at the start they go on or end as `interrupted`. */
  unfinished(): Promise<readonly ResponseRecord[]>;
}
