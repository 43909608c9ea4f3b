import type { Page, ResponseQuery, ResponseRecord } from "../ports/store.ts";
import type { TaskKind, TaskQuery, TaskState, TaskStore } from "../ports/task-store.ts";
import { statusesOf, type Task, taskOfResponse } from "./task.ts";

export interface TaskListQuery {
  /** Absent: everyone's, for `admin`. */
  readonly owner?: string;
  readonly kind?: TaskKind | "response";
  readonly state?: TaskState;
  /** Most entries, 1 … 1000. */
  readonly limit: number;
  readonly cursor?: string;
}

/**
 * One page of tasks and background responses, newest first. A cursor is a place in time, so that one stands in both lists.
 * @throws CoreError invalid-request for a cursor that no page gave.
 */
export async function listTasks(
  { kind, state, ...place }: TaskListQuery,
  tasks: TaskStore,
  listResponses: (query: ResponseQuery) => Promise<Page<ResponseRecord>>,
): Promise<Page<Task>> {
  const sources: Promise<Page<Task>>[] = [];
  if (kind !== "response") {
    const query: TaskQuery = {
      ...place,
      ...(kind === undefined ? {} : { kind }),
      ...(state === undefined ? {} : { state }),
    };
    sources.push(tasks.list(query));
  }
  if (kind === undefined || kind === "response") {
    const statuses = state === undefined ? [undefined] : statusesOf(state);
    for (const status of statuses) {
      const query: ResponseQuery = { ...place, background: true, ...(status === undefined ? {} : { status }) };
      sources.push(listResponses(query).then((page) => ({ ...page, data: page.data.map(taskOfResponse) })));
    }
  }
  return merge(await Promise.all(sources), place.limit);
}

function merge(pages: readonly Page<Task>[], limit: number): Page<Task> {
  const all = pages.flatMap(({ data }) => data).sort(newestFirst);
  const data = all.slice(0, limit);
  const last = data.at(-1);
  const hasMore = all.length > data.length || pages.some(({ nextCursor }) => nextCursor !== undefined);
  return hasMore && last !== undefined ? { data, nextCursor: `${last.createdAt}-${last.id}` } : { data };
}

function newestFirst(a: Task, b: Task): number {
  return b.createdAt - a.createdAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}
