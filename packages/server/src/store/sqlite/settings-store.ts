import type { SettingsStore } from "@plenum/core";
import type { DatabaseThread } from "./database-thread.ts";

/** Settings on disk, as JSON. */
export class SqliteSettingsStore implements SettingsStore {
  readonly #thread: DatabaseThread;

  constructor(thread: DatabaseThread) {
    this.#thread = thread;
  }

  async get(name: string): Promise<unknown> {
    const text = await this.#thread.call("settings.get", name);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async set(name: string, value: unknown): Promise<void> {
    const text = value === undefined ? undefined : JSON.stringify(value);
    await this.#thread.call("settings.set", { name, value: text }, { isSynced: true });
  }

  names(prefix: string): Promise<readonly string[]> {
    return this.#thread.call("settings.names", prefix);
  }
}
