import type { Bus, BusTopic } from "../ports/bus.ts";

/** Notifications inside one process, delivered at once. */
export class MemoryBus implements Bus {
  readonly #listeners = new Map<BusTopic, Set<(id: string) => void>>();

  publish(topic: BusTopic, id: string): void {
    for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener(id);
  }

  subscribe(topic: BusTopic, listener: (id: string) => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }
}
