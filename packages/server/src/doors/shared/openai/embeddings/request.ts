import type { EmbeddingRequest } from "@plenum/core";
import { compact } from "../../compact.ts";
import type { HeaderFields } from "../../request-headers.ts";
import { readFields } from "../fields.ts";
import { toKeepAliveMs } from "../sampling.ts";
import { embeddingTable } from "./fields.ts";
import type { EmbeddingBody } from "./schema.ts";

export interface ConvertedEmbedding {
  readonly request: EmbeddingRequest;
  readonly isBase64: boolean;
  readonly withoutEffect: readonly string[];
}

/** The core's request for vectors. A text that is too long is refused, as this API does. */
export function toEmbeddingRequest(body: EmbeddingBody, headers: HeaderFields): ConvertedEmbedding {
  const { priority = 0, deadlineMs, trace } = headers;
  return {
    request: {
      model: body.model,
      inputs: toInputs(body.input),
      truncate: false,
      priority,
      runtimeOptions: {},
      ...compact({ dimensions: body.dimensions, deadlineMs, trace, keepAliveMs: toKeepAliveMs(body.keep_alive) }),
    },
    isBase64: body.encoding_format === "base64",
    withoutEffect: readFields(body, embeddingTable),
  };
}

type Input = EmbeddingBody["input"];

function toInputs(input: Input): EmbeddingRequest["inputs"] {
  if (typeof input === "string") return [input];
  return isTokens(input) ? [input] : input;
}

function isTokens(input: Exclude<Input, string>): input is number[] {
  return typeof input[0] === "number";
}
