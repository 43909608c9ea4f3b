import type { TraceContext } from "@plenum/core";

/** W3C Trace Context §3.2.2; versions to come may have more after the flags. */
const traceparentForm =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]{0,200})?$/;

/** Of a `tracestate`, so much has to be passed on (§3.3.1.5). */
const tracestateForm = /^[\t\x20-\x7e]{1,512}$/;

/** The trace that a request is part of. What is not valid is as if it were absent, as the standard has it. */
export function readTrace(traceparent: string | undefined, tracestate: string | undefined): TraceContext | undefined {
  if (traceparent === undefined || !traceparentForm.test(traceparent)) return undefined;
  if (traceparent.startsWith("00-") && traceparent.length > 55) return undefined;
  if (tracestate === undefined || !tracestateForm.test(tracestate)) return { traceparent };
  return { traceparent, tracestate };
}
