import { follow, type ResumePolicy } from "./follow.ts";
import { type Http, withQuery } from "./http.ts";
import type { Page } from "./models.ts";
import type { CallOptions, EventsOptions } from "./responses-api.ts";
import { type AnyTaskEvent, isLastTaskEvent, type ListTasksOptions, type LmspTask, type TaskRequest } from "./tasks.ts";

export interface TasksApi {
  /** Accepted when it resolves: the task survives a crash of the service from then on. */
  create(request: TaskRequest, options?: CallOptions): Promise<LmspTask>;
  /** @throws LmspError `not-found`. */
  get(id: string, options?: CallOptions): Promise<LmspTask>;
  /** Newest first, background responses among them. */
  list(filter?: ListTasksOptions, options?: CallOptions): Promise<Page<LmspTask>>;
  /** Events to the last one, resumed when the connection breaks or the service starts anew. */
  events(id: string, options?: EventsOptions): AsyncGenerator<AnyTaskEvent>;
  /** What a batch has answered so far: JSON Lines, in the order of its input. The caller reads or cancels it. */
  output(id: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>>;
  /** Nothing happens when it has ended already. */
  cancel(id: string, options?: CallOptions): Promise<LmspTask>;
  delete(id: string, options?: CallOptions): Promise<void>;
}

const path = "/lmsp/v1/tasks";

function pathOf(id: string, rest = ""): string {
  return `${path}/${encodeURIComponent(id)}${rest}`;
}

/** The calls under `/lmsp/v1/tasks`. */
export function createTasksApi(http: Http, policy: ResumePolicy): TasksApi {
  return {
    create: (request, { signal } = {}) => http.json({ method: "POST", path, body: request, signal }),
    get: (id, { signal } = {}) => http.json({ path: pathOf(id), signal }),
    list: (filter = {}, { signal } = {}) => http.json({ path: withQuery(path, { ...filter }), signal }),
    events: (id, options = {}) => watch(http, policy, id, options),
    output: async (id, { signal } = {}) => {
      const answer = await http.send({ path: pathOf(id, "/output"), accept: "application/jsonl", signal });
      return answer.body ?? new ReadableStream({ start: (controller) => controller.close() });
    },
    cancel: (id, { signal } = {}) => http.json({ method: "POST", path: pathOf(id, "/cancel"), signal }),
    delete: (id, { signal } = {}) => http.nothing({ method: "DELETE", path: pathOf(id), signal }),
  };
}

async function* watch(
  http: Http,
  policy: ResumePolicy,
  id: string,
  { after = 0, signal }: EventsOptions,
): AsyncGenerator<AnyTaskEvent> {
  const reopen = (last: number) => {
    const headers: Record<string, string> = last > 0 ? { "last-event-id": String(last) } : {};
    return http.send({ path: pathOf(id, "/events"), accept: "text/event-stream", headers, signal });
  };
  const first = await reopen(after);
  yield* follow<AnyTaskEvent>({ first, after, reopen, isLast: isLastTaskEvent, policy, signal });
}
