import type { TaskProgress } from "@plenum/core";

type OnProgress = (progress: TaskProgress) => void;

interface Running<Result> {
  readonly result: Promise<Result>;
  readonly abort: AbortController;
  readonly watchers: Set<OnProgress>;
  last?: TaskProgress;
}

/** Work that several may wait for and that is done once: it goes on until the last of them has left. */
export class SharedPulls<Result> {
  readonly #running = new Map<string, Running<Result>>();

  /** Joins the work of this key, or begins it. @throws what the work throws; the signal's reason for who leaves. */
  async join(
    key: string,
    options: { readonly onProgress: OnProgress; readonly signal: AbortSignal },
    begin: (onProgress: OnProgress, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { onProgress, signal } = options;
    signal.throwIfAborted();
    const previous = this.#running.get(key);
    // One that everybody has left still holds its files; the next waits until it has let go.
    if (previous?.abort.signal.aborted) {
      await previous.result.catch(() => undefined);
      return this.join(key, options, begin);
    }
    const running = previous ?? this.#begin(key, begin);
    // Each call is a watcher of its own, also with one function.
    const watcher: OnProgress = (progress) => onProgress(progress);
    running.watchers.add(watcher);
    if (running.last !== undefined) watcher(running.last);
    let leave = (): void => {};
    const left = new Promise<never>((_resolve, reject) => {
      leave = () => {
        running.watchers.delete(watcher);
        // The last one waits for the end, so that nobody begins again beside it.
        if (running.watchers.size === 0) running.abort.abort(signal.reason);
        else reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
    });
    try {
      return await Promise.race([running.result, left]);
    } finally {
      signal.removeEventListener("abort", leave);
      running.watchers.delete(watcher);
    }
  }

  #begin(key: string, begin: (onProgress: OnProgress, signal: AbortSignal) => Promise<Result>): Running<Result> {
    const abort = new AbortController();
    const watchers = new Set<OnProgress>();
    const tell: OnProgress = (progress) => {
      running.last = progress;
      for (const watcher of watchers) watcher(progress);
    };
    const result = Promise.resolve()
      .then(() => begin(tell, abort.signal))
      .finally(() => this.#running.delete(key));
    result.catch(() => undefined);
    const running: Running<Result> = { result, abort, watchers };
    this.#running.set(key, running);
    return running;
  }
}
