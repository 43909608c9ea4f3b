import { type FoundService, type WatchServicesOptions, watchServices } from "./service-watch.ts";

export interface DiscoverOptions extends WatchServicesOptions {
  /** Milliseconds that answers are waited for. Default 3000. */
  readonly timeoutMs?: number;
  /** Ends the wait; what was found until then is the result. */
  readonly signal?: AbortSignal | undefined;
}

/** LMSP services of the local network, each asked for its document. Empty when there are none. */
export async function discover(options: DiscoverOptions = {}): Promise<readonly FoundService[]> {
  const { timeoutMs = 3_000, signal, ...others } = options;
  const watch = watchServices(others);
  try {
    await elapsed(timeoutMs, signal);
    return watch.services().filter(({ isGone }) => !isGone);
  } finally {
    watch.close();
  }
}

function elapsed(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}
