import type { Call } from "../shared/door.ts";

/** Whether unknown fields are refused instead of ignored: `Prefer: handling=strict` (RFC 7240, LMSP §5). */
export function isStrict({ request }: Pick<Call, "request">): boolean {
  return /\bhandling=strict\b/i.test(request.headers["prefer"] ?? "");
}
