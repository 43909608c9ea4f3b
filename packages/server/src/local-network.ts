import type { NearbyService, Neighbourhood } from "@plenum/core";
import type { Logger } from "pino";
import { isLoopbackHost } from "./config/index.ts";
import { type Announcement, announceService, type Neighbours, watchNeighbours } from "./discovery/network/index.ts";

export interface LocalNetworkOptions {
  /** Service id. */
  readonly id: string;
  /** Name that people see. */
  readonly name: string;
  /** Address that the service listens on. */
  readonly host: string;
  /** False: nothing is looked for or announced. */
  readonly isOn: boolean;
  /** Interfaces that are offered. */
  readonly kinds: () => readonly string[];
  /** Whether a token is needed. */
  readonly authRequired: () => boolean;
  readonly logger: Logger;
}

/** The service among the others of the local network (LMSP §1), from `open` to `close`. */
export class LocalNetwork implements Neighbourhood {
  readonly #options: LocalNetworkOptions;
  readonly #listeners = new Set<() => void>();
  #neighbours: Neighbours | undefined;
  #announcement: Announcement | undefined;
  #isTls = false;

  constructor(options: LocalNetworkOptions) {
    this.#options = options;
  }

  services(): readonly NearbyService[] {
    return this.#neighbours?.services() ?? [];
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Begins to look, and announces the service when others can reach it. @param url of the HTTP listener */
  open(url: string): void {
    const { id, host, isOn } = this.#options;
    if (!isOn) return;
    const { port, protocol } = new URL(url);
    this.#isTls = protocol === "https:";
    this.#neighbours = watchNeighbours({ ownId: id, onFault: (error) => this.#fault(error) });
    this.#neighbours.onChange(() => {
      for (const listener of [...this.#listeners]) listener();
    });
    if (!isLoopbackHost(host)) this.#announcement = this.#announce(Number(port || (this.#isTls ? 443 : 80)));
  }

  /** Says goodbye. */
  async close(): Promise<void> {
    this.#neighbours?.close();
    await this.#announcement?.close();
  }

  #announce(port: number): Announcement {
    const { name, host, logger } = this.#options;
    return announceService({
      name,
      port,
      host,
      txt: () => this.#txt(),
      onRenamed: (other) => logger.warn({ name, other }, "local network: the name is taken"),
      onAnnounced: (addresses) => logger.info({ name, port, addresses }, "local network: announced"),
      onFault: (error) => this.#fault(error),
    });
  }

  #txt() {
    const { id, kinds, authRequired } = this.#options;
    const auth = authRequired() ? "bearer" : "none";
    return { version: "1.0", id, tls: this.#isTls, auth, kinds: kinds() } as const;
  }

  #fault(error: unknown): void {
    this.#options.logger.warn({ cause: String(error) }, "local network: mDNS can't be used");
  }
}
