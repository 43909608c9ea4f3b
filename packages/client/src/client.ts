import { type AdminApi, createAdminApi } from "./admin-api.ts";
import { defaultResume, type ResumePolicy } from "./follow.ts";
import { createHttp, type Fetch } from "./http.ts";
import type { LmspModel, Page } from "./models.ts";
import { type CallOptions, createResponsesApi, type ResponsesApi } from "./responses-api.ts";
import type { ServiceDocument } from "./service.ts";
import { type ServiceEvent, type WatchOptions, watchService } from "./service-events.ts";
import { createTasksApi, type TasksApi } from "./tasks-api.ts";

export interface ClientOptions {
  /** Address of the service, such as `http://127.0.0.1:7411`. */
  readonly baseUrl: string;
  /** Bearer token. Absent: none is sent. */
  readonly token?: string | undefined;
  /** Default: the platform's own. */
  readonly fetch?: Fetch;
  /** Default: 8 tries from 200 ms to 5 s apart, a connection counts as lost after 45 s of silence. */
  readonly resume?: Partial<ResumePolicy>;
}

/** One service. Every call rejects with LmspError, or with the signal's reason when aborted. */
export interface Client extends AdminApi {
  /** The service document; needs no token. */
  service(options?: CallOptions): Promise<ServiceDocument>;
  readonly models: {
    list(options?: CallOptions): Promise<Page<LmspModel>>;
    /** @throws LmspError `model-not-found`. */
    get(id: string, options?: CallOptions): Promise<LmspModel>;
    /** Removes the model's files. @throws LmspError `conflict` while it is busy. */
    delete(id: string, options?: CallOptions): Promise<void>;
  };
  readonly responses: ResponsesApi;
  readonly tasks: TasksApi;
  /** What happens in the service, as one stream that connects again by itself. */
  events(options?: WatchOptions): AsyncGenerator<ServiceEvent>;
}

/**
 * Makes a client; nothing is sent yet.
 *
 *     const client = createClient({ baseUrl: "http://127.0.0.1:7411" });
 *     for await (const event of client.responses.stream({ model: "smollm2:135m", input: "Why is the sky blue?" })) {
 *       if (event.type === "response.output_text.delta") write(event.delta);
 *     }
 */
export function createClient(options: ClientOptions): Client {
  const http = createHttp(options);
  const policy = { ...defaultResume, ...options.resume };
  return {
    ...createAdminApi(http),
    service: ({ signal } = {}) => http.json({ path: "/.well-known/lmsp", signal }),
    models: {
      list: ({ signal } = {}) => http.json({ path: "/lmsp/v1/models", signal }),
      get: (id, { signal } = {}) => http.json({ path: `/lmsp/v1/models/${encodeURIComponent(id)}`, signal }),
      delete: (id, { signal } = {}) =>
        http.nothing({ method: "DELETE", path: `/lmsp/v1/models/${encodeURIComponent(id)}`, signal }),
    },
    responses: createResponsesApi(http, policy),
    tasks: createTasksApi(http, policy),
    events: (watch = {}) => watchService(http, policy, watch),
  };
}
