import {
  isTerminalEvent,
  LmspError,
  type LmspEvent,
  type LmspResponse,
  type ResponseProgressEvent,
} from "@plenum/client";
import { dim, type Surroundings, withoutControls } from "../surroundings.ts";

/** Writes over the line it wrote before, on a terminal. */
const clearLine = "\r\u001b[2K";

/**
 * Writes an answer as it comes: its text to the output, waiting and thinking to a terminal's error output.
 * @returns the response at its end.
 * @throws LmspError with the response's problem when it failed or was cancelled.
 */
export async function showAnswer(events: AsyncIterable<LmspEvent>, around: Surroundings): Promise<LmspResponse> {
  const { output, errors } = around;
  let isWaiting = false;
  let isLineOpen = false;
  let response: LmspResponse | undefined;
  const show = (text: string) => output.write(output.isTerminal ? withoutControls(text) : text);
  try {
    for await (const event of events) {
      if (isWaiting) errors.write(clearLine);
      isWaiting = false;
      if (event.type === "response.progress" && errors.isTerminal) {
        errors.write(dim(errors, progressText(event)));
        isWaiting = true;
      } else if (event.type === "response.reasoning_text.delta" && errors.isTerminal) {
        errors.write(dim(errors, withoutControls(event.delta)));
      } else if (event.type === "response.output_text.delta" || event.type === "response.refusal.delta") {
        show(event.delta);
        isLineOpen = !event.delta.endsWith("\n");
      } else if (event.type === "response.restarted") {
        errors.write(dim(errors, `${isLineOpen ? "\n" : ""}(the service started anew: what came before is void)\n`));
        isLineOpen = false;
      } else if (isTerminalEvent(event)) response = event.response;
    }
  } finally {
    if (isWaiting) errors.write(clearLine);
    if (isLineOpen) output.write("\n");
  }
  if (response !== undefined) return ended(response, around);
  throw new LmspError({ code: "invalid-answer", detail: "The stream ended without saying how the answer ended." });
}

function progressText(event: ResponseProgressEvent): string {
  switch (event.kind) {
    case "queued":
      return `waiting, place ${event.position} in the queue …`;
    case "loading":
      return "loading the model …";
    case "prompt":
      return `reading the prompt, ${event.done_tokens} of ${event.total_tokens} tokens …`;
  }
}

function ended(response: LmspResponse, { errors }: Surroundings): LmspResponse {
  if (response.problem !== undefined) throw LmspError.fromProblem(response.problem);
  if (response.status === "incomplete") {
    const reason = response.incomplete_reason === "max_tokens" ? "the token limit" : response.incomplete_reason;
    errors.write(
      dim(errors, `(cut off by ${reason ?? "the service"} after ${response.usage?.output_tokens ?? "?"} tokens)\n`),
    );
  }
  return response;
}

/** One line about tokens and times. */
export function timingsText({ usage, timings }: LmspResponse): string {
  const parts = [`${usage?.input_tokens ?? "?"} tokens in, ${usage?.output_tokens ?? "?"} out`];
  if (timings?.first_token !== undefined) parts.push(`first after ${Math.round(timings.first_token)} ms`);
  if (timings?.generation && usage) {
    parts.push(`${((usage.output_tokens / timings.generation) * 1000).toFixed(1)} tokens/s`);
  }
  if (timings?.total !== undefined) parts.push(`${Math.round(timings.total)} ms in all`);
  return parts.join(", ");
}
