import type { Response } from "@plenum/core";
import type { Call } from "../shared/door.ts";
import { type ConvertedRequest, inWordsOf } from "../shared/openai/converted.ts";
import type { EventSource, ToWireError } from "../shared/openai/event-source.ts";
import { type AnsweredResponse, answerJson, completeForOwner, streamToOwner } from "../shared/run-response.ts";
import { toWireError } from "./errors.ts";
import { headersOf } from "./headers.ts";
import { headersAfterMs, sseRenderer } from "./stream.ts";

/** How one API of this door shows a response. */
export interface Rendering {
  readonly endsWithDone: boolean;
  toSource(parts: { readonly toWireError: ToWireError; readonly param: ConvertedRequest["param"] }): EventSource;
  toBody(response: Response): unknown;
}

/** Runs a converted request and answers as its API does, streamed or whole. */
export async function runConverted(call: Call, converted: ConvertedRequest, rendering: Rendering): Promise<void> {
  const { request, withoutEffect, isStream, param } = converted;
  // What is accepted in the background has no status of its own to wait for.
  const options = { call, door: "openai", request, headersAfterMs: request.background ? 0 : headersAfterMs } as const;
  const headers = ({ id, withoutEffect: more }: AnsweredResponse) =>
    headersOf(id, [...withoutEffect, ...more.map(param)]);
  if (isStream) {
    await inWordsOf(converted, () =>
      streamToOwner(options, (answered) =>
        sseRenderer(rendering.toSource({ toWireError, param }), {
          headers: headers(answered),
          endsWithDone: rendering.endsWithDone,
        }),
      ),
    );
    return;
  }
  const completed = await inWordsOf(converted, () => completeForOwner(options));
  if (completed === undefined) return;
  answerJson(call, 200, rendering.toBody(completed.response), headers(completed.answered));
}
