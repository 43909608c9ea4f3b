/** Small JSON values that the service keeps by name: its id, approved neighbours, added runtimes. Every implementation runs `testSettingsStore`. */
export interface SettingsStore {
  get(name: string): Promise<unknown>;
  /** Undefined: deletes it. Durable when it resolves. */
  set(name: string, value: unknown): Promise<void>;
  /** Names that begin with a prefix, sorted. */
  names(prefix: string): Promise<readonly string[]>;
}
