import { randomBytes } from "node:crypto";
import { CoreError } from "@plenum/core";

/** A JSON string, or a JSON number outside strings. */
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/gs;

/** Begins a string that stands for a number; nobody can have written it. */
const mark = `number-${randomBytes(16).toString("hex")}:`;
const marked = new RegExp(`"${mark}([^"]+)"`, "g");

/**
 * Parses JSON so that `writeExact` writes every number as it was read: big integers, `1.0` and `1e3` included. Such
 * numbers are marked strings in between. @throws SyntaxError
 */
export function parseExact(text: string): unknown {
  return JSON.parse(
    text.replaceAll(stringOrNumber, (found) => {
      if (found.startsWith('"') || JSON.stringify(Number(found)) === found) return found;
      return `"${mark}${found}"`;
    }),
  );
}

/** JSON text of what `parseExact` gave, or of a part of it. @throws CoreError backend-error when it is nested too deeply */
export function writeExact(value: unknown): string {
  return writeJson(value).replaceAll(marked, "$1");
}

/** JSON text of what a runtime sent. @throws CoreError backend-error when it is nested too deeply */
export function writeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // The parser goes deeper than the writer.
    if (!(error instanceof RangeError)) throw error;
    throw new CoreError("backend-error", "The runtime sent values that are nested too deeply.");
  }
}
