import { type BackendModel, CoreError, type ProblemCode, type ProblemDetails } from "@plenum/core";
import { cleanMessage } from "../shared/error-facts.ts";
import type { UpstreamAnswer } from "../shared/upstream-call.ts";
import { streamedError, upstreamError } from "../shared/upstream-errors.ts";
import { textOf } from "./json-fields.ts";

type Asked = Pick<BackendModel, "name" | "limits">;

/** Ollama's answer of a status that is no 2xx, as the core's problem. */
export function answerError(answer: UpstreamAnswer, model: Asked): CoreError {
  const own = ownError(textOf(answer.body, "error") ?? "", model);
  return own ?? withLimit(upstreamError(answer, { model: model.name }), model);
}

/** A line `{"error": …}` within a stream of status 200. */
export function lineError(line: unknown, model: Asked): CoreError {
  return ownError(textOf(line, "error") ?? "", model) ?? withLimit(streamedError(line, { model: model.name }), model);
}

interface Known {
  readonly pattern: RegExp;
  readonly code: ProblemCode;
  /** A sentence for the person who has to act. @param said Ollama's words @param match of the pattern */
  readonly sentence: (model: string, said: string, match: RegExpExecArray) => string;
  readonly details?: (match: RegExpExecArray) => ProblemDetails;
}

/** Ollama's words, in its capabilities, and the catalog's. */
const capabilities: Readonly<Record<string, string>> = {
  chat: "chat",
  completion: "completion",
  embeddings: "embeddings",
  generate: "completion",
  insert: "insert",
  thinking: "reasoning",
  tools: "tools",
  vision: "vision",
};

/** What Ollama says in its own way, mostly with status 500 whoever is at fault. */
const known: readonly Known[] = [
  {
    pattern: /does not support (chat|completion|embeddings|generate|insert|thinking|tools|vision)\b/,
    code: "unsupported-capability",
    sentence: (model, _said, [, what = ""]) => `${model} does not support ${what}; choose a model that does.`,
    details: ([, what = ""]) => ({ capability: capabilities[what] ?? what }),
  },
  {
    pattern: /requires more system memory|out of memory|insufficient memory/i,
    code: "insufficient-memory",
    sentence: (model, said) =>
      `${model} does not fit into Ollama's memory (${said}); unload another model or use a smaller one.`,
  },
  {
    pattern: /^invalid (?:JSON schema in )?format\b|^failed to (?:load|parse|initialize).*(?:format|grammar)/i,
    code: "invalid-request",
    sentence: (_model, said) => `Ollama can't hold this output format: ${said}.`,
    details: () => ({ param: "output.format" }),
  },
  {
    pattern: /^option "([^"]+)" must be/,
    code: "invalid-request",
    sentence: (_model, said) => `Ollama refused an option: ${said}.`,
    details: ([, option = ""]) => ({ param: `runtime_options.ollama.${option}` }),
  },
  {
    pattern: /illegal base64 data/,
    code: "invalid-request",
    sentence: () => "An image's base64 is not valid.",
    details: () => ({ param: "input" }),
  },
];

function ownError(said: string, { name }: Asked): CoreError | undefined {
  for (const { pattern, code, sentence, details } of known) {
    const match = pattern.exec(said);
    if (match === null) continue;
    const words = cleanMessage(said).replace(/\.$/, "");
    // Not for logs: Ollama's words may quote the request.
    const log = { logDetail: `Ollama's answer means ${code}.` };
    return new CoreError(code, sentence(name, words, match), { model: name, ...details?.(match) }, log);
  }
  return undefined;
}

/** Ollama tells no numbers: the context is known while the model is loaded. */
function withLimit(error: CoreError, { limits: { contextTokens } }: Asked): CoreError {
  if (error.code !== "context-length-exceeded" || contextTokens === undefined) return error;
  const detail = `The prompt is longer than the model's context of ${contextTokens} tokens; shorten it or let it be truncated.`;
  return new CoreError(error.code, detail, { limit: contextTokens, ...error.details });
}

export function notFound(model: string): CoreError {
  const detail = `Ollama has no model ${model}; pull it, or choose one of the list of models.`;
  return new CoreError("model-not-found", detail, { model, param: "model" });
}

export function invalid(detail: string, param: string): CoreError {
  return new CoreError("invalid-request", detail, { param });
}
