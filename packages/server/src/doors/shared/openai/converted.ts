import { CoreError, type Problem, type ResponseRequest, toCoreError } from "@plenum/core";

/** A body in the core's words. */
export interface ConvertedRequest {
  readonly request: ResponseRequest;
  readonly isStream: boolean;
  /** Fields that were taken without effect. */
  readonly withoutEffect: readonly string[];
  /** The API's spelling of a field that the core names. */
  readonly param: (corePath: string) => string;
}

/** A core path and the API's for it; the rest of a longer path is kept. */
export type Renaming = readonly [from: string, to: string];

/** The path with the first renaming that fits. */
export function renamePath(path: string, renamings: readonly Renaming[]): string {
  for (const [from, to] of renamings) {
    if (path === from) return to;
    if (path.startsWith(from) && /^[.[]/.test(path.slice(from.length))) return to + path.slice(from.length);
  }
  return path;
}

/** Sampling fields stand at the top of every OpenAI body. */
export const samplingRenamings: readonly Renaming[] = [
  "temperature",
  "top_p",
  "top_k",
  "min_p",
  "typical_p",
  "seed",
  "stop",
  "presence_penalty",
  "frequency_penalty",
  "repeat_penalty",
  "repeat_last_n",
  "logit_bias",
].map((name) => [`sampling.${name}`, name]);

/** The problem with its field, also in the sentence, in the API's spelling. */
export function renameProblem(problem: Problem, param: ConvertedRequest["param"]): Problem {
  const path = problem.details.param;
  if (path === undefined) return problem;
  const name = param(path);
  const coreName = path.slice(path.lastIndexOf(".") + 1);
  const detail = problem.detail.startsWith(`${coreName} `)
    ? name + problem.detail.slice(coreName.length)
    : problem.detail;
  return { code: problem.code, detail, details: { ...problem.details, param: name } };
}

/** Runs something whose errors speak of core fields; they are thrown again in the API's spelling. */
export async function inWordsOf<T>({ param }: Pick<ConvertedRequest, "param">, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (caught) {
    const error = toCoreError(caught);
    const { code, detail, details } = renameProblem(error, param);
    throw new CoreError(code, detail, details, { cause: error.cause, logDetail: error.logDetail });
  }
}
