import { PayloadKind, type TypedPayload } from "@plenum/nnrp";

/**
 * The JSON bytes of a submit or a result: the profile has exactly one structured event in each.
 * @param payloads of a body that is laid out as the protocol says.
 * @returns undefined when there is anything else.
 */
export function profilePayload(payloads: readonly TypedPayload[] | undefined): Uint8Array | undefined {
  const [only, ...more] = payloads ?? [];
  return only !== undefined && more.length === 0 && only.kind === PayloadKind.structuredEvent ? only.bytes : undefined;
}
