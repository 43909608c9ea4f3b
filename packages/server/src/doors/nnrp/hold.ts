import type { OperationListener, ServerOperation } from "@plenum/nnrp";

/**
 * For conformance runs only: a submit that is no request of the profile waits for a control message. A cancel is told to
 * the session by a trace context, and the operation is dropped; one that came with a deadline is answered at once.
 */
export function hold(submitted: ServerOperation): OperationListener | undefined {
  if (submitted.deadline !== undefined) {
    submitted.result(undefined);
    return undefined;
  }
  return {
    stop({ kind }) {
      if (kind !== "cancel" && kind !== "abort" && kind !== "frame-cancel") return;
      const { id, frameId, session, traceContext } = submitted;
      session.sendTraceContext(traceContext ?? { traceId: id, spanId: BigInt(frameId) });
    },
  };
}
