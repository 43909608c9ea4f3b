import { type Client, isTerminalEvent, LmspError, type LmspResponse, type ResponseRequest } from "@plenum/client";

/** One answer as its client saw it; times in milliseconds of one clock, token numbers as the service counted them. */
export interface MeasuredAnswer {
  readonly startMs: number;
  /** When each piece of the answer arrived. */
  readonly arrivalsMs: readonly number[];
  readonly inputTokens: number;
  /** Of these, tokens that a cache still held. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** It ended before as many tokens as it might have. */
  readonly isEarly: boolean;
}

/**
 * Runs a request and takes its times.
 * @throws LmspError when it fails, or when the service tells no token numbers; the signal's reason
 */
export async function measureAnswer(
  client: Client,
  request: ResponseRequest,
  signal: AbortSignal,
  now: () => number = () => performance.now(),
): Promise<MeasuredAnswer> {
  const startMs = now();
  const arrivalsMs: number[] = [];
  let response: LmspResponse | undefined;
  for await (const event of client.responses.stream(request, { signal })) {
    if (event.type.endsWith(".delta")) arrivalsMs.push(now());
    else if (isTerminalEvent(event)) response = event.response;
  }
  if (response === undefined) {
    throw new LmspError({ code: "invalid-answer", detail: "The stream ended without saying how the answer ended." });
  }
  if (response.problem !== undefined) throw LmspError.fromProblem(response.problem);
  const { usage } = response;
  if (usage === undefined) {
    const detail = "This model's runtime counts no tokens, so its speed can't be told.";
    throw new LmspError({ code: "invalid-answer", detail });
  }
  const mostTokens = request.output?.max_tokens ?? 0;
  return {
    startMs,
    arrivalsMs,
    inputTokens: usage.input_tokens,
    cachedTokens: usage.cached_input_tokens ?? 0,
    outputTokens: usage.output_tokens,
    isEarly: usage.output_tokens < mostTokens,
  };
}
