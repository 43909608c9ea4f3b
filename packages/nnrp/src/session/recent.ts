/** Remembers the last so many ids, for packets that come late. Empty ones take no memory. */
export class RecentIds<T extends number | bigint> {
  readonly #most: number;
  #ids: Set<T> | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  add(id: T): void {
    this.#ids ??= new Set();
    this.#ids.add(id);
    if (this.#ids.size <= this.#most) return;
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest);
      return;
    }
  }

  has(id: T): boolean {
    return this.#ids?.has(id) ?? false;
  }
}
