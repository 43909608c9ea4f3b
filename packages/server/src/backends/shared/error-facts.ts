/** What an error body says, whatever its shape. */
export interface ErrorFacts {
  /** Empty when there is none that a person can read. */
  readonly message: string;
  /** `type` and `code` where they are words. */
  readonly words: readonly string[];
  /** A `code` or `status` from 400 to 599, for errors within a stream of status 200. */
  readonly status?: number;
  readonly param?: string;
  /** Tokens of the prompt and of the context, where the body has them as numbers. */
  readonly requested?: number;
  readonly limit?: number;
}

type Loose = Readonly<Record<string, unknown>>;

/** @param body the parsed JSON, undefined when there is none @param text the body as it came */
export function errorFacts(body: unknown, text = ""): ErrorFacts {
  const found = innermost(body);
  if (found === undefined) return { message: isSentence(text) ? cleanMessage(text) : "", words: [] };
  if (typeof found === "string") return { message: cleanMessage(found), words: [] };
  const { type, code, status, param, n_prompt_tokens: requested, n_ctx: limit } = found;
  const httpStatus = [code, status].map(Number).find((value) => Number.isInteger(value) && value >= 400 && value < 600);
  return {
    message: cleanMessage(messageOf(found)),
    words: [type, code, status].filter((value): value is string => typeof value === "string"),
    ...(httpStatus === undefined ? {} : { status: httpStatus }),
    ...(typeof param === "string" ? { param } : {}),
    ...(typeof requested === "number" ? { requested } : {}),
    ...(typeof limit === "number" ? { limit } : {}),
  };
}

/**
 * Neither a page for browsers, nor JSON that was cut, nor bytes that are no text. Only its beginning is looked at: the
 * body is a stranger's, and may be made to be slow.
 */
function isSentence(text: string): boolean {
  const beginning = text.slice(0, 4_096);
  return !/<[a-z!/][^<>]*>|^\s*[{[]|\ufffd|(?![\t\r\n])\p{Cc}/iu.test(beginning);
}

/** `{error: {…}}`, `{error: "…"}`, `[{error}]`, `{errors: […]}`, `{detail: …}` and the object itself. */
function innermost(body: unknown, depth = 0): Loose | string | undefined {
  if (typeof body === "string") return body;
  if (Array.isArray(body)) return depth > 4 ? undefined : innermost(body[0], depth + 1);
  if (!isObject(body)) return undefined;
  const { error, errors, detail } = body;
  const inner = [error, errors, detail].find((value) => isObject(value) || Array.isArray(value));
  if (inner !== undefined && depth < 4) {
    const found = innermost(inner, depth + 1);
    if (found !== undefined) return found;
  }
  return body;
}

function messageOf(found: Loose): string {
  const { message, error, detail, msg, title } = found;
  return [message, detail, error, msg, title].find((value): value is string => typeof value === "string") ?? "";
}

function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const mostCharacters = 600;

/** A message of a server as it may be shown: one line, without addresses, keys, stack traces and HTML. */
export function cleanMessage(message: string): string {
  const text = message
    .slice(0, 8_192)
    .replace(/(\r?\n)\s*(at |File "|Traceback )[\s\S]*$/, "")
    .replace(/^\s*Traceback [\s\S]*$/, "")
    .replace(/<[a-z!/][^<>]*>/gi, " ")
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, "…")
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b|\blocalhost:\d+\b/g, "…")
    .replace(/\b(?:sk|pk|hf|gsk|xai|api|key)[-_][A-Za-z0-9_*-]{6,}|\bBearer\s+\S+/gi, "…")
    .replace(/\s+/g, " ")
    .trim();
  return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters - 1)}…`;
}
