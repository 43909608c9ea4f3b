import { CoreError, mayDo } from "@plenum/core";
import type { MetricsHistory } from "../../../metrics/history.ts";
import type { Call, Operation } from "../../shared/door.ts";
import { ServiceStream } from "../watch/service-stream.ts";
import { type TopicName, topicNames } from "../watch/topic.ts";
import { createTopics } from "../watch/topics.ts";
import { root } from "./root.ts";

/** Responses whose own events one stream may carry. */
const mostWatched = 64;

/** One multiplexed stream of everything that a page or a script watches (LMSP §8). */
export function serviceEventOperations(history: MetricsHistory): readonly Operation[] {
  const topics = createTopics(history);
  const watch = async (call: Call): Promise<void> => {
    const asked = readTopics(call);
    const told = topics.filter(
      ({ name, scope }) => (asked?.has(name) ?? name !== "metrics") && mayDo(call.caller.principal, scope),
    );
    await new ServiceStream(call, told).run(readWatched(call));
  };
  return [{ name: "events", method: "GET", path: `${root}/events`, scope: "read", handle: watch }];
}

/** Undefined: the usual ones. @throws CoreError invalid-request */
function readTopics({ request }: Call): ReadonlySet<TopicName> | undefined {
  const text = request.query.get("topics");
  if (text === null || text === "") return undefined;
  const names = text.split(",");
  const unknown = names.find((name) => !topicNames.some((known) => known === name));
  if (unknown === undefined) return new Set(names as TopicName[]);
  const detail = `There is no topic '${unknown.slice(0, 40)}'; there are ${topicNames.join(", ")}.`;
  throw new CoreError("invalid-request", detail, { param: "topics" });
}

/** `?watch=<response id>:<after>`, any number of times. @throws CoreError invalid-request */
function readWatched({ request }: Call): ReadonlyMap<string, number> {
  const watched = new Map<string, number>();
  for (const text of request.query.getAll("watch")) {
    const match = /^(resp_\w+|chatcmpl-\w+)(?::(\d{1,15}))?$/.exec(text);
    if (match?.[1] === undefined) {
      const detail = `\`watch\` must be a response's id and a number, such as resp_0a1b:12, not '${text.slice(0, 40)}'.`;
      throw new CoreError("invalid-request", detail, { param: "watch" });
    }
    watched.set(match[1], Number(match[2] ?? 0));
  }
  if (watched.size <= mostWatched) return watched;
  throw new CoreError("invalid-request", `One stream carries the events of ${mostWatched} responses at most.`, {
    param: "watch",
    limit: mostWatched,
    requested: watched.size,
  });
}
