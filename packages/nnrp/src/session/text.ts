const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Diagnostics that this side sends are cut here, at a whole character. */
const diagnosticBytes = 1024;

/** A diagnostic as UTF-8. */
export function encodeDiagnostic(text: string | undefined): Uint8Array | undefined {
  if (text === undefined || text === "") return undefined;
  const room = new Uint8Array(Math.min(diagnosticBytes, text.length * 3));
  return room.subarray(0, encoder.encodeInto(text, room).written);
}

/** A peer's diagnostic; what is not UTF-8 becomes U+FFFD. */
export const decodeDiagnostic = (bytes: Uint8Array): string =>
  bytes.byteLength === 0 ? "" : decoder.decode(bytes.subarray(0, 4 * diagnosticBytes));

export const encodeText = (text: string): Uint8Array => encoder.encode(text);
