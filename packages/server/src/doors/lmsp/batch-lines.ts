import { type BatchInput, type BatchOutput, CoreError, failedLine } from "@plenum/core";
import { z } from "zod";
import { checkBody, parseBody } from "../shared/parse-body.ts";
import { toProblemBody } from "./errors.ts";
import { toCoreRequest } from "./request.ts";
import { toWireResponse } from "./response.ts";
import { responseSchema, strictResponseSchema } from "./schema.ts";

/** Limits of one batch. */
export const batchLimits = {
  lines: 50_000,
  /** Bytes of one line. */
  lineBytes: 4_194_304,
  customIdCharacters: 512,
} as const;

/** Lines that are read before others get their turn. */
const linesPerTurn = 100;

const newline = 0x0a;

/**
 * Reads the lines of a batch (LMSP §7): JSON Lines, or values that were parsed already. A line that is wrong fails by
 * itself; a batch that has none or too many is refused.
 * @param nowMs milliseconds since the epoch, from which a line's `timeout_ms` counts.
 * @throws CoreError invalid-request
 */
export async function readBatch(
  requests: Uint8Array | readonly unknown[],
  nowMs: number,
  isStrict: boolean,
): Promise<readonly BatchInput[]> {
  const schemas = isStrict ? strictSchemas : looseSchemas;
  const given = requests instanceof Uint8Array ? [...linesOf(requests)] : requests;
  if (given.length === 0) {
    throw new CoreError("invalid-request", "A batch needs at least one line.", { param: "requests" });
  }
  if (given.length > batchLimits.lines) {
    throw new CoreError("invalid-request", `A batch holds at most ${batchLimits.lines} lines.`, {
      param: "requests",
      limit: batchLimits.lines,
      requested: given.length,
    });
  }
  const lines: BatchInput[] = [];
  for (const line of given) {
    lines.push(readLine(line, schemas, nowMs));
    if (lines.length % linesPerTurn === 0) await new Promise(setImmediate);
  }
  return lines;
}

/** A line of the output, as JSON text. */
export function toBatchLine(output: BatchOutput): string {
  const { index, customId } = output;
  const end =
    "problem" in output ? { problem: toProblemBody(output.problem) } : { response: toWireResponse(output.response) };
  return JSON.stringify({ index, ...(customId === undefined ? {} : { custom_id: customId }), ...end });
}

/** Lines with something in them. */
function* linesOf(text: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf(newline, start);
    const end = found < 0 ? text.length : found;
    const line = text.subarray(start, end);
    if (line.some((byte) => byte > 0x20)) yield line;
    start = end + 1;
  }
}

const wrapper = z.object({ custom_id: z.string().max(batchLimits.customIdCharacters).nullish(), request: z.unknown() });

interface Schemas {
  readonly wrapper: typeof wrapper;
  readonly request: typeof responseSchema;
}

const looseSchemas: Schemas = { wrapper, request: responseSchema };
const strictSchemas: Schemas = { wrapper: wrapper.strict(), request: strictResponseSchema };

function readLine(line: unknown, schemas: Schemas, nowMs: number): BatchInput {
  let customId: string | undefined;
  try {
    const value = line instanceof Uint8Array ? parseLine(line) : line;
    let request = value;
    if (isRecord(value) && "request" in value) {
      const id = value["custom_id"];
      if (typeof id === "string" && id.length <= batchLimits.customIdCharacters) customId = id;
      request = checkBody(value, schemas.wrapper).request;
    }
    // The connection that brought it is not its owner.
    const core = toCoreRequest(checkBody(request, schemas.request), nowMs, false);
    return { request: core, ...(customId === undefined ? {} : { customId }) };
  } catch (error) {
    return failedLine(error, customId);
  }
}

function parseLine(line: Uint8Array): unknown {
  if (line.length > batchLimits.lineBytes) {
    throw new CoreError("request-too-large", `A line holds at most ${batchLimits.lineBytes} bytes.`, {
      limit: batchLimits.lineBytes,
      requested: line.length,
    });
  }
  return parseBody(line, z.unknown());
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
