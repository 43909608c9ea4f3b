import type { BackendRequest, InputItem } from "@plenum/core";

/**
 * For `truncation: "oldest"`: the request without its oldest turn. A turn is a user's message and all that follows it up
 * to the next one; system and developer texts stay. When only the last turn is left, its oldest step goes (a call
 * together with its outputs), as long as something follows that step. Undefined when nothing can go.
 */
export function dropOldestTurn(request: BackendRequest): BackendRequest | undefined {
  const { input } = request;
  if (input.kind !== "items") return undefined;
  const items = input.items.filter((item) => !isSystem(item));
  const next = items.findIndex((item, index) => index > 0 && isUser(item));
  const removed = new Set(next > 0 ? items.slice(0, next) : oldestStep(items));
  if (removed.size === 0) return undefined;
  const gone = new Set([...removed].flatMap((item) => (item.type === "function_call" ? [item.callId] : [])));
  const kept = input.items.filter(
    (item) => !removed.has(item) && !(item.type === "function_call_output" && gone.has(item.callId)),
  );
  return { ...request, input: { kind: "items", items: kept } };
}

/** The first step after the user's message: what the model said and called, and the outputs. */
function oldestStep(items: readonly InputItem[]): readonly InputItem[] {
  const start = items[0] !== undefined && isUser(items[0]) ? 1 : 0;
  let end = start;
  while (end < items.length && items[end]?.type !== "function_call_output") end += 1;
  while (items[end]?.type === "function_call_output") end += 1;
  return end < items.length ? items.slice(start, end) : [];
}

function isSystem(item: InputItem): boolean {
  return item.type === "message" && (item.role === "system" || item.role === "developer");
}

function isUser(item: InputItem): boolean {
  return item.type === "message" && item.role === "user";
}
