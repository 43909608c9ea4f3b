import type { SettingsStore } from "../ports/settings-store.ts";
import { CoreError } from "../problems/core-error.ts";

/** Settings that hold an alias each: the name follows, the value is the model's name. */
const prefix = "alias/";
/** Characters of a name. */
const longestName = 256;

/** Further names of models that were given while the service ran, kept over restarts. */
export class ModelAliases {
  readonly #settings: SettingsStore;
  readonly #onChange: (aliases: ReadonlyMap<string, string>) => void;
  #aliases: ReadonlyMap<string, string> = new Map();

  /** @param onChange told of all aliases after each change. */
  constructor(settings: SettingsStore, onChange: (aliases: ReadonlyMap<string, string>) => void) {
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /** Reads them again: at the start, and when another replica may have changed them. */
  async load(): Promise<void> {
    const names = await this.#settings.names(prefix);
    const entries = await Promise.all(
      names.map(async (name) => [name.slice(prefix.length), await this.#settings.get(name)] as const),
    );
    this.#set(new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string")));
  }

  has(alias: string): boolean {
    return this.#aliases.has(alias);
  }

  /** @throws CoreError invalid-request for a name that no model can have. */
  async set(alias: string, model: string): Promise<void> {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused.
    if (alias === "" || alias.length > longestName || /[\s\u0000-\u001f\u007f]/.test(alias)) {
      const detail = `A model's name has 1 to ${longestName} characters, none of them white space.`;
      throw new CoreError("invalid-request", detail, { param: "alias" });
    }
    await this.#settings.set(`${prefix}${alias}`, model);
    this.#set(new Map(this.#aliases).set(alias, model));
  }

  async delete(alias: string): Promise<void> {
    await this.#settings.set(`${prefix}${alias}`, undefined);
    this.#set(new Map([...this.#aliases].filter(([name]) => name !== alias)));
  }

  #set(aliases: ReadonlyMap<string, string>): void {
    this.#aliases = aliases;
    this.#onChange(aliases);
  }
}
