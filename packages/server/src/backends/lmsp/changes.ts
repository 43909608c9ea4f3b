import type { Upstream } from "../shared/upstream.ts";
import { upstreamError } from "../shared/upstream-errors.ts";
import type { LmspSettings } from "./options.ts";

/** Milliseconds after which a service that has no such stream is asked for it again. */
const askAgainMs = 600_000;

/**
 * Hears of changes of the service's models while it can be reached (LMSP §8), so that they show here at once and not only
 * at the next look. A service without that stream is only looked at.
 */
export class Changes {
  readonly #upstream: Upstream;
  readonly #settings: LmspSettings;
  readonly #onChange: () => void;
  readonly #closed = new AbortController();
  #isListening = false;
  #againAtMs = 0;

  /** @param onChange called when models may have changed, and when the stream ends */
  constructor(upstream: Upstream, settings: LmspSettings, onChange: () => void) {
    this.#upstream = upstream;
    this.#settings = settings;
    this.#onChange = onChange;
  }

  /** Listens unless it does already. */
  listen(): void {
    if (this.#isListening || this.#closed.signal.aborted || performance.now() < this.#againAtMs) return;
    this.#isListening = true;
    void this.#run().finally(() => {
      this.#isListening = false;
    });
  }

  close(): void {
    this.#closed.abort();
  }

  async #run(): Promise<void> {
    const headers = { accept: "text/event-stream", ...this.#settings.authorization };
    const decoder = new TextDecoder();
    let line = "";
    let isOpen = false;
    try {
      await this.#upstream.stream(
        { method: "GET", path: "/lmsp/v1/events?topics=models", headers, signal: this.#closed.signal },
        {
          onHead: (status) => {
            isOpen = status === 200;
            return isOpen;
          },
          onData: (chunk) => {
            // Only the names of events are looked at; what has changed, the list tells.
            const lines = (line + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
            line = (lines.pop() ?? "").slice(0, longestName);
            if (lines.some((each) => /^event:\s*model\./.test(each))) this.#onChange();
          },
          onRefused: (answer) => upstreamError(answer),
        },
      );
    } catch {
      // Why, the next look tells.
    }
    if (this.#closed.signal.aborted) return;
    if (isOpen) this.#onChange();
    else this.#againAtMs = performance.now() + askAgainMs;
  }
}

/** Characters of a line that are kept until its end comes: the data of an event may be long, its name is not. */
const longestName = 256;
