import type { Page } from "../ports/store.ts";
import { CoreError } from "../problems/core-error.ts";

/** Where a record stands in a list. */
export interface Place {
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly id: string;
}

/**
 * One page of a list, newest first.
 * @param placeOf where a record stands.
 * @throws CoreError invalid-request for a cursor that no page gave.
 */
export function newestFirst<T>(
  records: readonly T[],
  placeOf: (record: T) => Place,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string },
): Page<T> {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  const matching = records
    .filter((record) => after === undefined || comparePlaces(placeOf(record), after) < 0)
    .sort((a, b) => comparePlaces(placeOf(b), placeOf(a)));
  const data = matching.slice(0, limit);
  const last = data.at(-1);
  if (matching.length === data.length || last === undefined) return { data };
  return { data, nextCursor: cursorOf(placeOf(last)) };
}

/** Below 0: a is older than b. */
export function comparePlaces(a: Place, b: Place): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** The cursor after which a list goes on behind this place. */
export function cursorOf({ createdAt, id }: Place): string {
  return `${createdAt}-${id}`;
}

/** A place in the list, which stands also when the record there is gone. @throws CoreError invalid-request */
export function readCursor(cursor: string): Place {
  const match = /^(\d{1,16})-(\w+)$/.exec(cursor);
  if (match?.[2] === undefined) {
    throw new CoreError("invalid-request", "The cursor is none of this list; use `next_cursor` as it came.", {
      param: "cursor",
    });
  }
  return { createdAt: Number(match[1]), id: match[2] };
}
