import type { Ids } from "../ports/ids.ts";

const alphabet = "0123456789abcdefghijklmnopqrstuv";

/** 24 letters of 5 random bits each. */
export const randomIds: Ids = {
  unique() {
    let id = "";
    for (const byte of crypto.getRandomValues(new Uint8Array(24))) id += alphabet.charAt(byte & 31);
    return id;
  },
};
