/** Binary messages as a server frames them: unmasked, whole (RFC 6455, section 5.2). */

const finalBinary = 0x82;
const longestHeader = 10;

/** Frames each message of `bytes`, which ends at its offset in `ends`, back to back: one buffer for one write. */
export function frameMessages(bytes: Uint8Array, ends: readonly number[]): Buffer {
  // From the pool: memory of its own costs more than the frame.
  const framed = Buffer.allocUnsafe(bytes.byteLength + ends.length * longestHeader);
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
      framed.writeUInt16BE(length, at + 2);
      at += 4;
    } else {
      framed[at + 1] = 127;
      framed.writeUInt32BE(0, at + 2);
      framed.writeUInt32BE(length, at + 6);
      at += longestHeader;
    }
    framed.set(from === 0 && end === bytes.byteLength ? bytes : bytes.subarray(from, end), at);
    at += length;
    from = end;
  }
  return framed.subarray(0, at);
}
