import type { Probe } from "./probe.ts";
import type { Value } from "./value.ts";

/** What is known of a service before it is judged. */
export interface Facts {
  readonly document: Value;
  /** Catalog id of a model that answers chats; undefined: there is none. */
  readonly model: string | undefined;
  /** A model that makes embeddings. */
  readonly embeddingModel: string | undefined;
  /** Token of another principal, to whom nothing of ours is there. */
  readonly otherToken: string | undefined;
  readonly requiresToken: boolean;
  /** Kinds of tasks that the service document names. */
  readonly tasks: ReadonlySet<string>;
  /** Kinds of interfaces that it declares, with their URLs. */
  readonly interfaces: ReadonlyMap<string, string>;
}

/** What a case works with. */
export interface Visit {
  readonly probe: Probe;
  readonly facts: Facts;
  /** Catalog id of a model that answers chats. */
  readonly model: string;
  /** Notes what is wrong; a case without any has passed. */
  report(problem: string): void;
  /** Notes a problem unless the condition holds. */
  expect(holds: boolean, problem: string): void;
}

/** One check of a service. */
export interface Case {
  readonly id: string;
  /** Section of LMSP that it judges. */
  readonly section: string;
  /** Why it can't be run on this service; undefined: it can. */
  readonly skip?: (facts: Facts) => string | undefined;
  run(visit: Visit): Promise<void>;
}

export const needsModel = ({ model }: Facts): string | undefined =>
  model === undefined ? "no model answers chats; name one with --model" : undefined;
