import type { CoreError } from "@plenum/core";
import type { EngineProcess } from "./engine-process.ts";
import type { EngineEvent, ServiceMessage } from "./messages.ts";

/** A child that does not answer an abort in this time hangs and is killed; on a very busy machine a pass takes seconds. */
const abortPatienceMs = 30_000;

export interface EngineCallOptions {
  readonly engine: EngineProcess;
  /** The message for the id that the call got. */
  readonly message: (id: number) => ServiceMessage;
  /** @returns true when the event was the call's last. What it throws ends the call. */
  readonly onEvent: (event: EngineEvent) => boolean;
  readonly signal: AbortSignal;
}

/**
 * Runs one request on a child to its last event. Aborted, or failed by `onEvent`, it ends when the child has let go of
 * the request.
 */
export function callEngine(options: EngineCallOptions): Promise<void> {
  const { engine, signal } = options;
  return new Promise((resolve, reject) => {
    let ending: { readonly error: unknown } | undefined;
    let patience: NodeJS.Timeout | undefined;
    const settle = (error?: { readonly error: unknown }) => {
      engine.close(id);
      signal.removeEventListener("abort", onAbort);
      clearTimeout(patience);
      if (error === undefined) resolve();
      else reject(error.error);
    };
    const stop = (error: unknown) => {
      if (ending !== undefined) return;
      ending = { error };
      engine.send({ type: "abort", id });
      patience = setTimeout(() => engine.kill(), abortPatienceMs);
    };
    const onAbort = () => stop(signal.reason);
    const id = engine.open({
      onEvent: (event) => {
        if (ending !== undefined) {
          if (event.type === "failed" || event.type === "embedded") settle(ending);
          return;
        }
        try {
          if (options.onEvent(event)) settle();
        } catch (error) {
          if (event.type === "failed") settle({ error });
          else stop(error);
        }
      },
      onLost: (error: CoreError) => settle(ending ?? { error }),
    });
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    else engine.send(options.message(id));
  });
}
