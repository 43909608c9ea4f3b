import type { EventLog } from "@plenum/core";
import type { Rendering } from "./rendering.ts";

/** Most responses whose form is kept in mind. */
const mostContinued = 1024;

/** How a response that outlives its connection was asked for, so that its events come again as they came first. */
export interface ContinuedForm {
  readonly rendering: Rendering;
  readonly isStream: boolean;
  readonly wantsChunks: boolean;
}

/** The forms of responses made here with `on_disconnect: continue`, the newest ones. */
export class ContinuedResponses {
  readonly #log: EventLog;
  readonly #forms = new Map<string, ContinuedForm>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  add(id: string, form: ContinuedForm): void {
    for (const oldest of this.#forms.keys()) {
      if (this.#forms.size < mostContinued && this.#log.extent(oldest) !== undefined) break;
      this.#forms.delete(oldest);
    }
    this.#forms.set(id, form);
  }

  get(id: string): ContinuedForm | undefined {
    return this.#forms.get(id);
  }
}
