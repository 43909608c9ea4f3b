/** Binary messages as a server frames them: unmasked, whole (RFC 6455, section 5.2). */

const finalBinary = 0x82;
const longestHeader = 10;

/** Frames each message of `bytes`, which ends at its offset in `ends`, back to back: one buffer for one write. */
export function frameMessages(bytes: Uint8Array, ends: readonly number[]): Uint8Array {
  const framed = new Uint8Array(bytes.byteLength + ends.length * longestHeader);
  const view = new DataView(framed.buffer);
  let from = 0;
  let at = 0;
  for (const end of ends) {
    const length = end - from;
    framed[at] = finalBinary;
    if (length < 126) {
      framed[at + 1] = length;
      at += 2;
    } else if (length < 0x1_0000) {
      framed[at + 1] = 126;
      view.setUint16(at + 2, length);
      at += 4;
    } else {
      framed[at + 1] = 127;
      view.setUint32(at + 6, length);
      at += longestHeader;
    }
    framed.set(from === 0 && end === bytes.byteLength ? bytes : bytes.subarray(from, end), at);
    at += length;
    from = end;
  }
  return framed.subarray(0, at);
}
