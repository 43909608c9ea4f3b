import { CoreError } from "@plenum/core";
import type { ZodType, core as zodCore } from "zod";
import { mostTelling } from "./issues.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** @throws CoreError invalid-json */
function parseJson(body: Uint8Array): unknown {
  if (body.length === 0) {
    throw new CoreError("invalid-json", "The body is empty; send a JSON object.");
  }
  let text: string;
  try {
    text = decoder.decode(body);
  } catch (cause) {
    throw new CoreError("invalid-json", "The body is not UTF-8.", {}, { cause });
  }
  refuseDeep(body);
  try {
    return JSON.parse(text);
  } catch (error) {
    // Not as the cause: the parser quotes the body, which must not reach a log.
    throw new CoreError("invalid-json", `The body is not valid JSON: ${placeOf(error, text)}.`);
  }
}

/** Levels of lists and objects; what is deeper could exhaust the stack of whoever walks it. */
const mostLevels = 256;

/** @throws CoreError invalid-request */
function refuseDeep(body: Uint8Array): void {
  let level = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === quote) at = endOfText(body, at);
    else if (byte === 0x7b || byte === 0x5b) {
      level += 1;
      if (level > mostLevels) {
        throw new CoreError("invalid-request", `The body is nested deeper than ${mostLevels} levels.`, {
          limit: mostLevels,
        });
      }
    } else if (byte === 0x7d || byte === 0x5d) level -= 1;
  }
}

const quote = 0x22;
const backslash = 0x5c;

/** Place of the quote that ends the text which begins at `start`: a search in the memory, not byte by byte. */
function endOfText(body: Uint8Array, start: number): number {
  for (let end = body.indexOf(quote, start + 1); end >= 0; end = body.indexOf(quote, end + 1)) {
    let first = end;
    while (body[first - 1] === backslash) first -= 1;
    if ((end - first) % 2 === 0) return end;
  }
  return body.length;
}

/** @throws CoreError invalid-json, invalid-request with the first wrong field as `param`. */
export function parseBody<T>(body: Uint8Array, schema: ZodType<T>): T {
  return checkBody(parseJson(body), schema);
}

/**
 * The same for a body that is parsed already.
 * @param place of the value in the body. @default the body itself
 * @throws CoreError invalid-request with the first wrong field as `param`.
 */
export function checkBody<T>(value: unknown, schema: ZodType<T>, place?: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { issues } = result.error;
  throw toInvalidRequest(
    place === undefined ? issues : issues.map((issue) => ({ ...issue, path: [place, ...issue.path] })),
  );
}

/** The problem of a value that a schema refused. */
export function toInvalidRequest(issues: readonly zodCore.$ZodIssue[]): CoreError {
  const issue = mostTelling(issues, []);
  const param = pathText(issue.path);
  const detail = param === "" ? `The body is wrong: ${issue.message}.` : `'${param}' is wrong: ${issue.message}.`;
  return new CoreError("invalid-request", detail, param === "" ? {} : { param });
}

/** `messages[0].content` */
function pathText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}

/** Where the parser stopped, without repeating the body. */
function placeOf(cause: unknown, text: string): string {
  const match = cause instanceof Error ? /position (\d+)/.exec(cause.message) : null;
  if (match === null) {
    const isCut = cause instanceof Error && /end of JSON|Unterminated/i.test(cause.message);
    return isCut ? "it ends too early" : "there is something that is no JSON";
  }
  const before = text.slice(0, Number(match[1]));
  const line = before.split("\n").length;
  const column = before.length - before.lastIndexOf("\n");
  return `line ${line}, column ${column}`;
}
