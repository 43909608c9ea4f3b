import { type Response, usableModels } from "@plenum/core";
import type { MetricsHistory } from "../../../metrics/history.ts";
import type { Call } from "../../shared/door.ts";
import { toWirePoint } from "../operations/metrics.ts";
import { toWireModel, toWireResponse } from "../response.ts";
import { toWireNearby, toWireRuntime } from "../runtimes.ts";
import { toWireTask } from "../task.ts";
import type { ChangeKind, Topic } from "./topic.ts";

/** Responses and tasks in a snapshot: the newest ones. */
const mostListed = 200;

const models: Topic = {
  name: "models",
  scope: "read",
  member: "model",
  all: ({ core, caller }) =>
    new Map(usableModels(core.catalog, caller.principal).map((model) => [model.id, toWireModel(model)])),
  watch: ({ core }, changed) => core.catalog.onChange(() => changed()),
  event: (kind) => `model.${kind}`,
};

const responses: Topic = {
  name: "responses",
  scope: "read",
  member: "response",
  async all({ core, caller }) {
    const { data } = await core.responses.list({ limit: mostListed }, caller.principal);
    return new Map(data.map(({ response }) => [response.id, toListedResponse(response)]));
  },
  async one({ core, caller }, id) {
    // Gone by now, or not the caller's: the same to them.
    const record = await core.responses.get(id, caller.principal).catch(() => undefined);
    return record === undefined ? undefined : toListedResponse(record.response);
  },
  watch: ({ core }, changed) => core.responses.onChange(changed),
  // What is forgotten has ended before.
  event: (kind) => (kind === "removed" ? undefined : "response.changed"),
};

function toListedResponse(response: Response): object {
  const { output: _output, ...listed } = toWireResponse(response);
  return listed;
}

const tasks: Topic = {
  name: "tasks",
  scope: "read",
  member: "task",
  async all({ core, caller }) {
    const { data } = await core.tasks.list({ limit: mostListed }, caller.principal);
    return new Map(data.map((task) => [task.id, toWireTask(task)]));
  },
  async one({ core, caller }, id) {
    // Gone by now, or not the caller's: the same to them.
    const task = await core.tasks.get(id, caller.principal).catch(() => undefined);
    return task && toWireTask(task);
  },
  watch({ core }, changed) {
    const ends = [
      core.tasks.onChange(changed),
      // A background response is its own task.
      core.responses.onChange(changed),
    ];
    return () => {
      for (const end of ends) end();
    };
  },
  event: (kind) => (kind === "removed" ? undefined : "task.changed"),
};

const runtimes: Topic = {
  name: "runtimes",
  scope: "manage",
  member: "runtime",
  all: ({ core }) => new Map(core.runtimes.list().map((runtime) => [runtime.id, toWireRuntime(runtime)])),
  watch: ({ core }, changed) => core.runtimes.onChange(() => changed()),
  event: (kind) => (kind === "removed" ? "runtime.removed" : "runtime.changed"),
};

const nearby: Topic = {
  name: "nearby",
  scope: "manage",
  member: "nearby",
  all: ({ core }) => new Map(core.nearby.list().map((service) => [service.id, toWireNearby(service)])),
  watch: ({ core }, changed) => core.nearby.onChange(() => changed()),
  event: (kind) => (kind === "removed" ? undefined : "nearby.changed"),
};

function metrics(history: MetricsHistory): Topic {
  const last = (): ReadonlyMap<string, object> => {
    const { series } = history.view(60_000, 10_000);
    return new Map(
      series.flatMap(({ model, door, points }) =>
        points.slice(-2, -1).map((point) => [`${door} ${model}`, { model, door, ...toWirePoint(point) }] as const),
      ),
    );
  };
  return {
    name: "metrics",
    scope: "read",
    member: "point",
    all: last,
    watch: (_call: Call, changed) => history.onStep(() => changed()),
    event: (kind: ChangeKind) => (kind === "removed" ? undefined : "metrics"),
  };
}

/** Everything that can be watched. */
export function createTopics(history: MetricsHistory): readonly Topic[] {
  return [models, runtimes, tasks, responses, nearby, metrics(history)];
}
