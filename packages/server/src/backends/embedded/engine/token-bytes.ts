/** How a vocabulary writes its tokens: `bpe` in the byte-level alphabet of GPT-2, `spm` and `wpm` with U+2581 for a space. */
export type VocabularyKind = "bpe" | "spm" | "wpm";

const encoder = new TextEncoder();
const byteToken = /^<0x([0-9A-Fa-f]{2})>$/;

/** GPT-2's alphabet backwards: printable Latin-1 stands for itself, every other byte for U+0100 and up in order. */
const byteOfLetter = ((): ReadonlyMap<string, number> => {
  const letters = new Map<string, number>();
  let shifted = 0;
  for (let byte = 0; byte < 256; byte++) {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    letters.set(String.fromCodePoint(isPrintable ? byte : 256 + shifted++), byte);
  }
  return letters;
})();

/**
 * Bytes that a token adds to the text, which may be part of a character.
 * @param text the vocabulary's own spelling
 * @param isPlain true for tokens that the vocabulary keeps as plain text (user-defined ones)
 */
export function tokenBytes(text: string, kind: VocabularyKind, isPlain: boolean): Uint8Array {
  if (isPlain) return encoder.encode(text);
  const hex = byteToken.exec(text)?.[1];
  if (hex !== undefined && kind !== "bpe") return Uint8Array.of(Number.parseInt(hex, 16));
  if (kind !== "bpe") return encoder.encode(text.replaceAll("\u2581", " "));
  const bytes: number[] = [];
  for (const letter of text) {
    const byte = byteOfLetter.get(letter);
    if (byte === undefined) bytes.push(...encoder.encode(letter));
    else bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}
