/** An object as `JSON.parse` makes it: nothing is known of its members. */
export interface JsonObject {
  readonly [member: string]: unknown;
}

/** Levels of lists and objects that are read; what is deeper could exhaust the stack of whoever walks it. */
export const maxJsonLevels = 256;

/** Shorter texts can't open and close so many levels, so nobody counts. */
const shortText = 2 * maxJsonLevels;

export type ParsedObject =
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly problem: string };

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * One JSON object of UTF-8 bytes, or what is wrong with them. Never throws; the problem never quotes the input.
 */
export function parseObject(input: Uint8Array | string): ParsedObject {
  let text: string;
  try {
    text = typeof input === "string" ? input : decoder.decode(input);
  } catch {
    return { ok: false, problem: "it is not UTF-8" };
  }
  if (text.length > shortText && isDeeperThan(text, maxJsonLevels)) {
    return { ok: false, problem: `it is nested deeper than ${maxJsonLevels} levels` };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { ok: false, problem: "it is not JSON" };
  }
  return isJsonObject(value) ? { ok: true, value } : { ok: false, problem: "it is not an object" };
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

export function isNonEmptyString(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

const quote = 0x22;
const backslash = 0x5c;

function isDeeperThan(text: string, levels: number): boolean {
  let level = 0;
  let isText = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (isText) {
      if (char === backslash) at += 1;
      else if (char === quote) isText = false;
    } else if (char === quote) isText = true;
    else if (char === 0x7b || char === 0x5b) {
      level += 1;
      if (level > levels) return true;
    } else if (char === 0x7d || char === 0x5d) level -= 1;
  }
  return false;
}
