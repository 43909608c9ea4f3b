import type { BackendModel, BackendRequest } from "@plenum/core";
import { type Body, chatBody, sharedFields } from "../shared/openai/chat-body.ts";
import type { Dialect } from "./dialects.ts";

/** An upstream call: a path below the base URL and its body. */
export interface UpstreamBody {
  readonly path: "/v1/chat/completions" | "/v1/completions";
  readonly body: Body;
}

/** True: the answer is asked for in one piece. Several are not: some servers count only one, and pieces tell more. */
export function isWhole({ delivery, candidates }: BackendRequest, { stopsWhole }: Dialect): boolean {
  return delivery === "whole" && stopsWhole && candidates === 1;
}

/** A core request in the server's words. */
export function upstreamBody(
  request: BackendRequest,
  model: BackendModel,
  kind: string,
  dialect: Dialect,
): UpstreamBody {
  const { input } = request;
  const stream = streamFields(request, dialect);
  if (input.kind !== "completion" || !(input.raw || input.suffix)) {
    return { path: "/v1/chat/completions", body: { ...chatBody(request, model, kind, dialect), ...stream } };
  }
  const { logprobs } = request.sampling;
  const body = {
    ...sharedFields(request, model, kind, dialect, "max_tokens"),
    ...stream,
    prompt: input.prompt,
    ...(input.suffix ? { suffix: input.suffix } : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
  return { path: "/v1/completions", body };
}

function streamFields(request: BackendRequest, dialect: Dialect): object {
  if (isWhole(request, dialect)) return { stream: false };
  return dialect.asksForUsage ? { stream: true, stream_options: { include_usage: true } } : { stream: true };
}

/** The same body without its bound of tokens. */
export function withoutMaxTokens({ path, body }: UpstreamBody): UpstreamBody {
  const { max_tokens: _short, max_completion_tokens: _long, ...rest } = body;
  return { path, body: rest };
}
