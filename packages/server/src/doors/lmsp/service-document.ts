import type { MetricsHistory } from "../../metrics/history.ts";

/** Facts of the service that its document tells (LMSP §1), and its short history. */
export interface ServiceFacts {
  readonly history: MetricsHistory;
  /** Made once and kept; replicas share it. */
  readonly id: string;
  /** One for each replica. */
  readonly instance: string;
  readonly name: string;
  readonly version: string;
  readonly limits: { readonly requestBytes: number; readonly eventRetentionS: number };
  /** One entry for each endpoint that is on. */
  interfaces(asker: Asker): readonly InterfaceEntry[];
}

/** Who reads the document. */
export interface Asker {
  /** Origin as they reach the service; URLs begin with it. */
  readonly origin: string;
  /** True: they are on this machine, and may be told of what only it can reach. */
  readonly isLocal: boolean;
}

export interface InterfaceEntry {
  readonly kind: "lmsp" | "openai" | "ollama" | "nnrp";
  readonly url: string;
  readonly version?: string;
  readonly operations?: readonly string[];
  /** NNRP: its carrier, such as `tcp`. */
  readonly transport?: string;
  /** NNRP: what is spoken on it. */
  readonly profile?: string;
  readonly compatibility_levels?: readonly number[];
  /** NNRP: URL of the capability document. */
  readonly capabilities?: string;
}

/** Tells nothing that a stranger on the network must not know: no model names. */
export function toServiceDocument(
  facts: ServiceFacts,
  asker: Asker,
  isTokenRequired: boolean,
  kinds: readonly string[],
): Record<string, unknown> {
  return {
    lmsp_version: "1.0",
    service: {
      id: facts.id,
      instance: facts.instance,
      name: facts.name,
      software: { name: "plenum", version: facts.version },
    },
    auth: { required: isTokenRequired, schemes: ["bearer"] },
    interfaces: facts.interfaces(asker),
    features: { event_resume: true, idempotency: true, priorities: true, tasks: kinds },
    limits: { request_bytes: facts.limits.requestBytes, event_retention_s: facts.limits.eventRetentionS },
  };
}
