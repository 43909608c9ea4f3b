/** Requests that the cases send. */

export const root = "/lmsp/v1";

/** Answered in a few words. */
export function shortRequest(model: string): Record<string, unknown> {
  return { model, input: "Say hello.", output: { max_tokens: 16 }, sampling: { temperature: 0 } };
}

/** Answered for so long that there is time to cut, cancel or change it. */
export function longRequest(model: string): Record<string, unknown> {
  return {
    model,
    input: "Give a very long answer: count from one to one thousand in words.",
    output: { max_tokens: 400 },
  };
}
