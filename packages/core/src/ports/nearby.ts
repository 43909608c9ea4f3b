/** A service of the local network that was found and has answered for itself (LMSP §1). */
export interface NearbyService {
  /** Service id. It is no proof of who answers. */
  readonly id: string;
  /** Name that people see. */
  readonly name: string;
  /** Base URL at which it answered. */
  readonly url: string;
  /** LMSP version. */
  readonly version: string;
  readonly auth: "none" | "bearer";
  /** Interfaces that it offers, such as `lmsp` and `openai`. */
  readonly kinds: readonly string[];
  readonly addresses: readonly string[];
  /** Milliseconds since the epoch when it last answered. */
  readonly seenAtMs: number;
  /** It said goodbye, or was not heard of for too long. */
  readonly isGone: boolean;
}

/** Looks for services on the local network. */
export interface Neighbourhood {
  services(): readonly NearbyService[];
  /** Calls the listener after each change; the returned function ends that. */
  onChange(listener: () => void): () => void;
}

/** Where nobody looks. */
export const emptyNeighbourhood: Neighbourhood = { services: () => [], onChange: () => () => {} };
