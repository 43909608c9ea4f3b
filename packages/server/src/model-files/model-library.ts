import { rm, rmdir } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { CoreError, type SettingsStore } from "@plenum/core";
import { insideOf, isInside, safeName } from "./file-name.ts";
import { findGgufFiles } from "./find-gguf-files.ts";
import { sizeOf } from "./model-file.ts";
import { readOrigin, removeOrigin } from "./model-origin.ts";
import { removePart } from "./part-file.ts";
import { starterModel } from "./starter-model.ts";

/** Settings that hold a registered path each. */
const prefix = "model-path/";

/** The models folder and the files elsewhere that were registered: what there is, and whose it is. */
export class ModelLibrary {
  /** Absolute. */
  readonly folder: string;
  readonly #settings: SettingsStore;
  #registered: readonly string[] = [];

  constructor(folder: string, settings: SettingsStore) {
    this.folder = resolve(folder);
    this.#settings = settings;
  }

  /** Reads the registered paths: at the start, and when another replica may have changed them. */
  async load(): Promise<void> {
    this.#registered = (await this.#settings.names(prefix)).map((name) => name.slice(prefix.length));
  }

  /** Files and folders elsewhere that are served where they lie. */
  get registered(): readonly string[] {
    return this.#registered;
  }

  /** @param path absolute */
  async register(path: string): Promise<void> {
    if (this.#registered.includes(path)) return;
    await this.#settings.set(`${prefix}${path}`, { registered_at: new Date().toISOString() });
    await this.load();
  }

  /**
   * Removes a model: the files that the service placed itself; a registered one only stops being served.
   * @param path of its first file, absolute
   * @throws CoreError conflict for a file that somebody else put into the models folder.
   */
  async remove(path: string): Promise<void> {
    const place = this.#registered.find((registered) => registered === path || isInside(registered, path));
    if (place !== undefined) return this.#unregister(place, path);
    const names = await this.#placedNames(path);
    if (names === undefined || !isInside(this.folder, path)) {
      const detail = `${basename(path)} was not fetched by this service, so it stays; remove it from the models folder by hand.`;
      throw new CoreError("conflict", detail);
    }
    const folder = dirname(path);
    // The first file last: what is left of a model without it is not served.
    for (const name of names.toReversed()) {
      const file = insideOf(this.folder, folder.slice(this.folder.length), safeName(name));
      await rm(file, { force: true });
      await removePart(`${file}.part`);
    }
    await removeOrigin(path);
    // Only an empty folder goes.
    if (folder !== this.folder) await rmdir(folder).catch(() => undefined);
  }

  /** A folder that is named leaves its other files registered one by one. */
  async #unregister(place: string, path: string): Promise<void> {
    if (place !== path) {
      for (const other of await findGgufFiles(place)) {
        if (other !== path) await this.#settings.set(`${prefix}${other}`, { registered_at: new Date().toISOString() });
      }
    }
    await this.#settings.set(`${prefix}${place}`, undefined);
    await this.load();
  }

  /** Files that the service placed as this model. */
  async #placedNames(path: string): Promise<readonly string[] | undefined> {
    const origin = await readOrigin(path);
    if (origin !== undefined) return origin.files.map(({ name }) => name);
    const isStarter = basename(path) === starterModel.name && (await sizeOf(path)) === starterModel.sizeBytes;
    return isStarter ? [starterModel.name] : undefined;
  }
}
