import type { Call } from "../shared/door.ts";
import { type HeaderFields, readRequestHeaders } from "../shared/request-headers.ts";
import { OllamaRefusal } from "./refusal.ts";

export const jsonType = "application/json; charset=utf-8";

/** Names that can't stand in a header are left out: the client made them up. */
export function withoutEffectHeader(names: readonly string[]): Record<string, string> {
  const shown = [...new Set(names)].filter((name) => /^[\w.-]{1,64}$/.test(name));
  return shown.length === 0 ? {} : { "x-lmsp-without-effect": shown.join(", ") };
}

export function headerFields({ core, request }: Call): HeaderFields {
  return readRequestHeaders(request.headers, core.clock.now());
}

/** @throws OllamaRefusal without a name. */
export function requireName(name: string): string {
  if (name === "") throw new OllamaRefusal(400, "model is required");
  return name;
}
