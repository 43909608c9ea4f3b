import type { Lease, Leases } from "../ports/lease.ts";

/** Leases of a service with one replica: never lost, but held once at a time and with a growing epoch. */
export class MemoryLeases implements Leases {
  readonly #held = new Set<string>();
  #epoch = 0;

  async acquire(id: string, after = 0): Promise<Lease | undefined> {
    if (this.#held.has(id)) return undefined;
    this.#held.add(id);
    this.#epoch = Math.max(this.#epoch, after) + 1;
    const epoch = this.#epoch;
    return {
      epoch,
      onLost: () => {},
      release: async () => {
        this.#held.delete(id);
      },
    };
  }
}
