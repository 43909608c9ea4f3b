import { capabilityTokens } from "./registries.ts";
import { NnrpWireError } from "./wire-error.ts";

/** The body of CAPABILITY_NEGOTIATION and DEGRADE_PROFILE (section 4.18): sorted, unique, registered tokens. */

const known: ReadonlySet<string> = new Set(capabilityTokens);
const longest = Math.max(...capabilityTokens.map(({ length }) => length));
const badBody = (message: string) => new NnrpWireError("bad-body", message, "body");

/** Reads `count` tokens. Peers before 1.0.0-preview.4.26 put other bytes here. @throws {NnrpWireError} `bad-body`. */
export function decodeCapabilities(body: Uint8Array, count: number): string[] {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const tokens: string[] = [];
  let at = 0;
  for (let index = 0; index < count; index += 1) {
    if (body.byteLength - at < 2) throw badBody("A capability token is cut off");
    const length = view.getUint16(at, true);
    at += 2;
    if (body.byteLength - at < length) throw badBody("A capability token is cut off");
    const token = length > longest ? "" : String.fromCharCode(...body.subarray(at, at + length));
    at += length;
    if (!known.has(token)) throw badBody("A capability token is not registered");
    const last = tokens.at(-1);
    if (last !== undefined && last >= token) throw badBody("Capability tokens must be sorted and unique");
    tokens.push(token);
  }
  if (at !== body.byteLength) throw badBody("Bytes follow the last capability token");
  return tokens;
}

/** Writes tokens, sorted and once each. @throws {NnrpWireError} `bad-value`. */
export function encodeCapabilities(tokens: readonly string[]): Uint8Array {
  const sorted = [...new Set(tokens)].sort();
  const unknown = sorted.find((token) => !known.has(token));
  if (unknown !== undefined) throw new NnrpWireError("bad-value", "A capability token is not registered", "body");
  const body = new Uint8Array(sorted.reduce((sum, token) => sum + 2 + token.length, 0));
  const view = new DataView(body.buffer);
  let at = 0;
  for (const token of sorted) {
    view.setUint16(at, token.length, true);
    for (let i = 0; i < token.length; i += 1) view.setUint8(at + 2 + i, token.charCodeAt(i));
    at += 2 + token.length;
  }
  return body;
}
