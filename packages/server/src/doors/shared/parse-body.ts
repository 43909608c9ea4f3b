import { CoreError } from "@plenum/core";
import type { ZodType, core as zodCore } from "zod";

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
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CoreError("invalid-json", `The body is not valid JSON: ${placeOf(cause, text)}.`, {}, { cause });
  }
}

/** @throws CoreError invalid-json, invalid-request with the first wrong field as `param`. */
export function parseBody<T>(body: Uint8Array, schema: ZodType<T>): T {
  const result = schema.safeParse(parseJson(body));
  if (result.success) return result.data;
  throw toInvalidRequest(result.error.issues);
}

/** The deepest issue of the first union branch that got furthest says most. */
export function toInvalidRequest(issues: readonly zodCore.$ZodIssue[]): CoreError {
  const issue = mostTelling(issues, []);
  const param = pathText(issue.path);
  const detail = param === "" ? `The body is wrong: ${issue.message}.` : `'${param}' is wrong: ${issue.message}.`;
  return new CoreError("invalid-request", detail, param === "" ? {} : { param });
}

interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

function mostTelling(issues: readonly zodCore.$ZodIssue[], base: readonly PropertyKey[]): Issue {
  const [first] = issues;
  if (first === undefined) return { path: base, message: "not as expected" };
  const path = [...base, ...first.path];
  if (first.code !== "invalid_union" || first.errors.length === 0) return { path, message: sentenceOf(first.message) };
  const branches = first.errors.map((branch) => mostTelling(branch, path));
  const depth = Math.max(...branches.map((branch) => branch.path.length));
  const deepest = branches.filter((branch) => branch.path.length === depth);
  const messages = [...new Set(deepest.map((branch) => branch.message))];
  if (depth > path.length || first.message === noMessage) {
    return { path: deepest[0]?.path ?? path, message: messages.join(", or ") };
  }
  // The schema's own sentence says more than a list of what its branches expected.
  return { path, message: messages.join() === missing ? `${missing}, it ${first.message}` : first.message };
}

const noMessage = "Invalid input";
const missing = "it is missing";

function sentenceOf(message: string): string {
  return /, received undefined$/.test(message) ? missing : message.replace(/^Invalid input: /, "");
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
  if (match === null) return "it ends too early";
  const before = text.slice(0, Number(match[1]));
  const line = before.split("\n").length;
  const column = before.length - before.lastIndexOf("\n");
  return `line ${line}, column ${column}`;
}
