import type { TraceContext } from "@plenum/core";

/** Headers of a request to a runtime that pass its trace on (W3C Trace Context). */
export function traceHeaders({ trace }: { readonly trace?: TraceContext }): {
  readonly headers?: Readonly<Record<string, string>>;
} {
  if (trace === undefined) return {};
  const { traceparent, tracestate } = trace;
  return { headers: { traceparent, ...(tracestate === undefined ? {} : { tracestate }) } };
}
