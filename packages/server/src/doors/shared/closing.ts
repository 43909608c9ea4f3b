/** That a client went away, for whoever waits for it: lighter than a signal, of which every request would need one. */
export class Closing {
  #isClosed = false;
  #listeners: Set<() => void> | undefined;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls once at `close`; returns a function that ends the wait. */
  onClosed(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const listener of this.#listeners ?? []) listener();
  }
}
