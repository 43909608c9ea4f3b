/**
 * Notifications between replicas of one service. They can be lost: what must not be lost is state in the store, and a
 * notification only says "look now".
 */
export interface Bus {
  publish(topic: BusTopic, id: string): void;
  /** The returned function ends the subscription. */
  subscribe(topic: BusTopic, listener: (id: string) => void): () => void;
}

export type BusTopic =
  | "response.cancel"
  | "response.changed"
  | "task.cancel"
  | "task.changed"
  | "tokens.changed"
  | "runtimes.changed";
