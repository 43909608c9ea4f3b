import type { accessOperations } from "./access.ts";
import type { FaultKind } from "./database.ts";
import type { logOperations } from "./logs.ts";
import type { responseOperations } from "./responses.ts";
import type { taskOperations } from "./tasks.ts";
import type { upkeepOperations } from "./upkeep.ts";

/** Everything that the thread does, by name. */
type Operations = ReturnType<typeof responseOperations> &
  ReturnType<typeof logOperations> &
  ReturnType<typeof taskOperations> &
  ReturnType<typeof accessOperations> &
  ReturnType<typeof upkeepOperations>;

export type OperationName = keyof Operations;

/** What an operation takes; undefined: nothing. */
export type Argument<Name extends OperationName> = Parameters<Operations[Name]>[0];

export type Result<Name extends OperationName> = ReturnType<Operations[Name]>;

export interface ThreadOptions {
  readonly file: string;
  /** Most bytes of the file; 0: no limit. */
  readonly maxBytes: number;
}

/** Runs in one transaction, in order. */
export interface Batch {
  readonly operations: readonly { readonly name: OperationName; readonly argument: unknown }[];
  /** True: on the disk itself when it is answered, not only in the system's hands. */
  readonly isSynced: boolean;
}

export interface Fault {
  readonly kind: FaultKind;
  readonly message: string;
}

export type Outcome = { readonly value: unknown } | { readonly fault: Fault };

/** What the thread says: first that the database is open, or why it is not; then one answer for each batch. */
export type ThreadMessage =
  | { readonly type: "open" }
  | { readonly type: "refused"; readonly fault: Fault }
  | { readonly type: "done"; readonly outcomes: readonly Outcome[]; readonly evicted: readonly string[] };
