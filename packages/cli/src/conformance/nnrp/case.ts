import type { Judgement, Target } from "./visit.ts";

/** One check of a service. */
export interface Case {
  readonly id: string;
  /** Why it is not run. */
  readonly skip?: string;
  run(target: Target): Promise<Judgement>;
}
