import type { Core } from "@plenum/core";
import type { Door } from "../../shared/door.ts";
import { beginCall } from "../../shared/testing/call-door.ts";
import type { MemoryResponder } from "../../shared/testing/memory-responder.ts";

/** A `fetch` that calls a door in process: status and headers when they leave, the body as it is written. */
export function doorFetch(door: Door, core: Core): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(String(input));
    const { responder } = beginCall(door, core, {
      method: init.method ?? "GET",
      path: url.pathname + url.search,
      headers: Object.fromEntries(new Headers(init.headers)),
      ...(typeof init.body === "string" ? { body: init.body } : {}),
    });
    init.signal?.addEventListener("abort", () => responder.close(), { once: true });
    await started(responder);
    const { status, headers } = responder;
    return new Response(bodyOf(responder, init.signal ?? undefined), { status, headers });
  };
}

/** Polls: the responder has no hook for its start, and a test's answer takes milliseconds. */
async function started(responder: MemoryResponder): Promise<void> {
  while (!responder.hasStarted && !responder.isClosed) await new Promise((resolve) => setTimeout(resolve, 1));
}

function bodyOf(responder: MemoryResponder, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let sent = 0;
  return new ReadableStream({
    async pull(controller) {
      while (sent === responder.text.length && !responder.hasEnded && !signal?.aborted) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      if (signal?.aborted) controller.error(signal.reason);
      else if (sent === responder.text.length) controller.close();
      else {
        controller.enqueue(encoder.encode(responder.text.slice(sent)));
        sent = responder.text.length;
      }
    },
  });
}
