import type { EngineFailure } from "../messages.ts";

/** A failure inside the child that the service has a sentence for. */
export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly kind: EngineFailure["kind"];
  readonly numbers: { readonly limit?: number; readonly requested?: number };

  constructor(
    kind: EngineFailure["kind"],
    message: string,
    numbers: { readonly limit?: number; readonly requested?: number } = {},
  ) {
    super(message);
    this.kind = kind;
    this.numbers = numbers;
  }
}

/** Anything caught, as a failure that can travel. */
export function toFailure(error: unknown): EngineFailure {
  if (error instanceof EngineError) return { kind: error.kind, message: error.message, ...error.numbers };
  return { kind: "engine", message: error instanceof Error ? error.message : String(error) };
}
