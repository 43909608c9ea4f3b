import type { ResponseQuery, ResponseRecord } from "../ports/store.ts";

/** Whether a record is one of those that a query asks for. */
export function matchesQuery({ owner, request, response }: ResponseRecord, query: ResponseQuery): boolean {
  return (
    (query.owner === undefined || owner === query.owner) &&
    (query.door === undefined || response.door === query.door) &&
    (query.model === undefined || response.model === query.model) &&
    (query.status === undefined || response.status === query.status) &&
    (query.background === undefined || request.background === query.background)
  );
}
