import type { BackendSink } from "@plenum/core";

/** Knows whether output went out, after which nothing can be tried again, and passes `accepted` on once. */
export class OutputWatch {
  hasBegun = false;
  #isAccepted = false;
  readonly #sink: BackendSink;

  constructor(sink: BackendSink) {
    this.#sink = sink;
  }

  readonly sink: BackendSink = (events) => {
    const [first] = events;
    if (first?.type !== "accepted") this.hasBegun = true;
    else if (this.#isAccepted) return;
    else this.#isAccepted = true;
    this.#sink(events);
  };
}
