import type { Upstream } from "./upstream.ts";
import type { UpstreamCall, UpstreamReader } from "./upstream-call.ts";

/** A reader that knows when its answer is whole, so that the rest of the body means nothing. */
export interface AnswerStreamReader extends UpstreamReader {
  /** Milliseconds that the server may still take to end its body. Undefined: the answer is not whole yet. */
  readonly lingerMs: number | undefined;
}

/**
 * Reads a streamed answer. One that is whole is not lost when only the end of its body is missing or broken, and does
 * not hold its slot while a server keeps the body open.
 * @throws what `Upstream.stream` throws
 */
export async function streamAnswer(upstream: Upstream, call: UpstreamCall, reader: AnswerStreamReader): Promise<void> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(call.signal.reason);
  let lingerMs = Number.POSITIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let hasFailed = false;
  const watched: UpstreamReader = {
    onHead: (status, headers) => reader.onHead(status, headers),
    onRefused: (answer) => reader.onRefused(answer),
    onData(chunk) {
      try {
        reader.onData(chunk);
      } catch (error) {
        hasFailed = true;
        throw error;
      }
      if (reader.lingerMs === undefined || reader.lingerMs >= lingerMs) return;
      lingerMs = reader.lingerMs;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), lingerMs);
    },
  };
  if (call.signal.aborted) onAbort();
  call.signal.addEventListener("abort", onAbort);
  try {
    await upstream.stream({ ...call, signal: stop.signal }, watched);
  } catch (error) {
    call.signal.throwIfAborted();
    if (hasFailed || reader.lingerMs === undefined) throw error;
  } finally {
    call.signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  }
}
