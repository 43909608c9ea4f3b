const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** 6 bits each: 43 letters hold 256 bits. */
const letters = 43;

/** A fresh token of at least 256 random bits (LMSP §2), in the letters of base64url behind a prefix that tells what it is. */
export function newToken(): string {
  let text = "plenum_";
  for (const byte of crypto.getRandomValues(new Uint8Array(letters))) text += alphabet.charAt(byte & 63);
  return text;
}
