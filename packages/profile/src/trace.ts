import type { TraceContext } from "@plenum/nnrp";

const traceparent = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** @returns undefined when the header is not valid, or one of the ids would be 0 (§12.7). */
export function traceFromTraceparent(header: string): TraceContext | undefined {
  const match = traceparent.exec(header.trim());
  if (match === null) return undefined;
  const [, version, trace = "", span = "", flags = "", rest] = match;
  if (version === "00" && rest !== undefined) return undefined;
  const traceId = BigInt(`0x${trace.slice(16)}`);
  const spanId = BigInt(`0x${span}`);
  if (traceId === 0n || spanId === 0n) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** A W3C `traceparent` whose upper 64 bits are 0, since NNRP does not carry them. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${hex(traceId).padStart(32, "0")}-${hex(spanId)}-0${sampled ? 1 : 0}`;
}

function hex(id: bigint): string {
  return BigInt.asUintN(64, id).toString(16).padStart(16, "0");
}
