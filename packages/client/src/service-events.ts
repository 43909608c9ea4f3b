import type { LmspRuntime, MetricsPoint, NearbyService } from "./admin.ts";
import { readEvents } from "./event-stream.ts";
import type { NumberedEvent } from "./events.ts";
import { canResume, checkIsEventStream, delayMs, type ResumePolicy, wait } from "./follow.ts";
import { type Http, withQuery } from "./http.ts";
import type { LmspModel } from "./models.ts";
import type { LmspResponse } from "./responses.ts";
import type { CallOptions } from "./responses-api.ts";
import type { LmspTask } from "./tasks.ts";

/** What can be watched on the one stream of a service (LMSP §8). */
export type ServiceTopic = "models" | "runtimes" | "tasks" | "responses" | "nearby" | "metrics";

/** A response as the service's stream tells of it: without its output. */
export type ListedResponse = Omit<LmspResponse, "output">;

/** Everything that is watched, as it is at a connect. */
export interface ServiceSnapshot {
  readonly type: "snapshot";
  readonly models?: readonly LmspModel[];
  readonly runtimes?: readonly LmspRuntime[];
  readonly tasks?: readonly LmspTask[];
  readonly responses?: readonly ListedResponse[];
  readonly nearby?: readonly NearbyService[];
}

/** Not numbered: what a lost connection missed is in the next snapshot. */
export type ServiceEvent =
  | ServiceSnapshot
  | { readonly type: "model.added" | "model.changed" | "model.removed"; readonly model: LmspModel }
  | { readonly type: "runtime.changed" | "runtime.removed"; readonly runtime: LmspRuntime }
  | { readonly type: "task.changed"; readonly task: LmspTask }
  | { readonly type: "response.changed"; readonly response: ListedResponse }
  | { readonly type: "nearby.changed"; readonly nearby: NearbyService }
  | { readonly type: "metrics"; readonly point: MetricsPoint & { readonly model: string; readonly door: string } }
  /** Of a response that is watched by `watch`. */
  | { readonly type: "response.event"; readonly response_id: string; readonly event: NumberedEvent };

export interface WatchOptions extends CallOptions {
  /** Default: every topic but `metrics`. */
  readonly topics?: readonly ServiceTopic[];
  /** Responses whose own events come along, by id, and the sequence after which they start. */
  readonly watch?: ReadonlyMap<string, number>;
}

/**
 * Follows a service over as many connections as it takes; each begins with a snapshot. Ends when aborted.
 * @throws LmspError when the service refuses, or is not there for the allowed tries.
 */
export async function* watchService(
  http: Http,
  policy: ResumePolicy,
  { topics, watch = new Map(), signal }: WatchOptions,
): AsyncGenerator<ServiceEvent> {
  const places = new Map(watch);
  let failures = 0;
  while (true) {
    let lost: unknown;
    try {
      const path = withQuery("/lmsp/v1/events", {
        topics: topics?.join(","),
        watch: [...places].map(([id, after]) => `${id}:${after}`),
      });
      const answer = await http.send({ path, accept: "text/event-stream", signal });
      checkIsEventStream(answer);
      if (answer.body === null) return;
      for await (const event of readEvents<ServiceEvent>(answer.body, policy.silenceMs)) {
        signal?.throwIfAborted();
        failures = 0;
        if (event.type === "response.event") places.set(event.response_id, event.event.sequence);
        yield event;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!canResume(error)) throw error;
      lost = error;
    }
    failures += 1;
    if (failures > policy.attempts) throw lost ?? new Error("The service ended the stream again and again.");
    await wait(delayMs(failures, policy, lost), signal);
  }
}
