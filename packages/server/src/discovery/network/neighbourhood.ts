import { watchServices } from "@plenum/client/node";

export interface WatchNeighboursOptions {
  /** Id of the own service, which is no neighbour. */
  readonly ownId: string;
  /** mDNS can't be used on a network. */
  readonly onFault?: (error: Error) => void;
}

/** Another service of the local network, which has answered for itself. */
interface Neighbour {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly version: string;
  readonly auth: "none" | "bearer";
  readonly kinds: readonly string[];
  readonly addresses: readonly string[];
  readonly seenAtMs: number;
  readonly isGone: boolean;
}

export interface Neighbours {
  services(): readonly Neighbour[];
  onChange(listener: () => void): () => void;
  close(): void;
}

/** Looks for other services of the local network until it is closed. */
export function watchNeighbours({ ownId, onFault }: WatchNeighboursOptions): Neighbours {
  const watch = watchServices({ ownId, ...(onFault === undefined ? {} : { onFault }) });
  return {
    services: () =>
      watch.services().map(({ baseUrl, document: _document, ...service }) => ({ ...service, url: baseUrl })),
    onChange: (listener) => watch.onChange(listener),
    close: () => watch.close(),
  };
}
