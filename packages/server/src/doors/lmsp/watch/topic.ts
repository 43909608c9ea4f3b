import type { Scope } from "@plenum/core";
import type { Call } from "../../shared/door.ts";

export const topicNames = ["models", "runtimes", "tasks", "responses", "nearby", "metrics"] as const;
export type TopicName = (typeof topicNames)[number];

export type ChangeKind = "added" | "changed" | "removed";

/** A kind of things that can be watched (LMSP §8). */
export interface Topic {
  readonly name: TopicName;
  /** A caller without it is told nothing of these things. */
  readonly scope: Scope;
  /** Member that carries the thing in an event. */
  readonly member: string;
  /** Everything now, by id, as the native interface tells it. */
  all(call: Call): ReadonlyMap<string, object> | Promise<ReadonlyMap<string, object>>;
  /** One thing; undefined when it is gone or not the caller's. Absent: a change is looked for in `all`. */
  one?(call: Call, id: string): Promise<object | undefined>;
  /** Calls the listener after changes, with the id where it is known; the returned function ends that. */
  watch(call: Call, changed: (id?: string) => void): () => void;
  /** Event of a change; undefined: it is not told. */
  event(kind: ChangeKind): string | undefined;
}
