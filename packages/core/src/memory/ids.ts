import type { Ids } from "../ports/ids.ts";

const alphabet = "0123456789abcdefghijklmnopqrstuv";
const letters = 24;
/** A call to the source of randomness costs microseconds: bytes are drawn for this many ids at once. */
const idsPerDraw = 64;
const bytes = new Uint8Array(letters * idsPerDraw);
let next = bytes.length;

/** 24 letters of 5 random bits each. */
export const randomIds: Ids = {
  unique() {
    if (next === bytes.length) {
      crypto.getRandomValues(bytes);
      next = 0;
    }
    let id = "";
    for (const end = next + letters; next < end; next += 1) id += alphabet.charAt((bytes[next] ?? 0) & 31);
    return id;
  },
};
