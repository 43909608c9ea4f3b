import type { SettingsStore } from "../ports/settings-store.ts";

/** Settings in memory, kept as their JSON text: nobody shares an object with the store. */
export class MemorySettingsStore implements SettingsStore {
  readonly #values = new Map<string, string>();

  async get(name: string): Promise<unknown> {
    const text = this.#values.get(name);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async set(name: string, value: unknown): Promise<void> {
    if (value === undefined) this.#values.delete(name);
    else this.#values.set(name, JSON.stringify(value));
  }

  async names(prefix: string): Promise<readonly string[]> {
    return [...this.#values.keys()].filter((name) => name.startsWith(prefix)).sort();
  }
}
