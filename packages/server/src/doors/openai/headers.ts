import type { ResponseHeaders } from "../shared/door.ts";

/** Most names that one header lists. */
const namesInHeader = 32;

/**
 * Headers of an answer: the response's own id and what was taken without effect.
 * @param id undefined where there is no response, as for embeddings.
 */
export function headersOf(id: string | undefined, withoutEffect: readonly string[]): ResponseHeaders {
  if (id !== undefined && withoutEffect.length === 0) return { "x-lmsp-response-id": id };
  const names = [...new Set(withoutEffect.map(sanitise))].slice(0, namesInHeader);
  return {
    ...(id === undefined ? {} : { "x-lmsp-response-id": id }),
    ...(names.length === 0 ? {} : { "x-lmsp-without-effect": names.join(", ") }),
  };
}

/** Names come from the client: nothing but what a field's name can be gets into a header. */
function sanitise(name: string): string {
  return name.replace(/[^\w.\-[\]]/g, "_").slice(0, 64);
}
