/** A JSON string, or a JSON number outside strings. */
const stringOrNumber = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/gs;

/**
 * The arguments of a call as an object for templates that write objects. Numbers whose text would not come out of
 * JavaScript as it went in (big integers, `1.0`, `1e3`) are put in through `number` and stay exact.
 * @returns undefined when the text is no JSON object
 */
export function parseArguments(text: string, number: (raw: string) => string): Record<string, unknown> | undefined {
  const exact = text.replaceAll(stringOrNumber, (found) => {
    if (found.startsWith('"') || JSON.stringify(Number(found)) === found) return found;
    return JSON.stringify(number(found));
  });
  return parseObject(exact);
}

/** The text as JSON object, or undefined. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    // Not JSON: the caller has a way for that.
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
