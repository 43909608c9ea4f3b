import type { MeasuredAnswer } from "./measure-answer.ts";

/** Milliseconds from the request to the first piece of the answer; undefined: no piece came. */
export function ttftMs({ startMs, arrivalsMs }: MeasuredAnswer): number | undefined {
  const [first] = arrivalsMs;
  return first === undefined ? undefined : first - startMs;
}

/** Prompt tokens a second: what was read anew, until the first piece of the answer. */
export function promptRate(answer: MeasuredAnswer): number | undefined {
  const ms = ttftMs(answer);
  return ms === undefined || ms <= 0 ? undefined : ((answer.inputTokens - answer.cachedTokens) / ms) * 1000;
}

/** Tokens a second of one answer, from its first piece to its last. */
export function answerRate({ arrivalsMs, outputTokens }: MeasuredAnswer): number | undefined {
  const spanMs = (arrivalsMs.at(-1) ?? 0) - (arrivalsMs[0] ?? 0);
  // The first piece's tokens were made before the span.
  const tokens = outputTokens * (1 - 1 / arrivalsMs.length);
  return spanMs > 0 ? (tokens / spanMs) * 1000 : undefined;
}

/**
 * Tokens a second of answers that run side by side, while they all do: from when the last of them began until the first
 * one ended. So neither an answer that ends early nor the emptying at the end counts as slowness. Answers that begin
 * after another one has ended have waited for its place, and don't count.
 *
 * Pieces say when, `outputTokens` says how many: a piece stands for its share of the answer's tokens.
 * @returns undefined when no two pieces fall into that time
 */
export function roundRate(answers: readonly MeasuredAnswer[]): number | undefined {
  const begun = answers.filter(({ arrivalsMs }) => arrivalsMs.length > 1);
  if (begun.length === 0) return undefined;
  const endMs = Math.min(...begun.map(({ arrivalsMs }) => arrivalsMs.at(-1) ?? 0));
  const running = begun.filter(({ arrivalsMs }) => (arrivalsMs[0] ?? 0) < endMs);
  const startMs = Math.max(...running.map(({ arrivalsMs }) => arrivalsMs[0] ?? 0));
  if (!(endMs > startMs)) return undefined;
  const tokens = running.map(({ arrivalsMs, outputTokens }) => {
    const inTime = arrivalsMs.filter((ms) => ms > startMs && ms <= endMs).length;
    return (outputTokens * inTime) / arrivalsMs.length;
  });
  return (tokens.reduce((sum, count) => sum + count, 0) / (endMs - startMs)) * 1000;
}

/** The middle of the numbers that are there; undefined: there is none. */
export function median(values: readonly (number | undefined)[]): number | undefined {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)];
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  return upper === undefined || lower === undefined ? undefined : (upper + lower) / 2;
}
