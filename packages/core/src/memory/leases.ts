import type { Lease, Leases } from "../ports/lease.ts";

/** Leases of a service with one replica: never lost, but held once at a time and with a growing epoch. */
export class MemoryLeases implements Leases {
  readonly #held = new Set<string>();
  #epoch = 0;

  async acquire(id: string): Promise<Lease | undefined> {
    if (this.#held.has(id)) return undefined;
    this.#held.add(id);
    this.#epoch += 1;
    return {
      epoch: this.#epoch,
      onLost: () => {},
      release: async () => {
        this.#held.delete(id);
      },
    };
  }
}
