import { ModelWatch } from "../shared/model-watch.ts";
import type { ModelFacts } from "../shared/openai/listed-model.ts";
import { namedModels } from "../shared/openai/listed-model.ts";
import type { RuntimeProblems } from "../shared/runtime-problems.ts";
import type { Upstream } from "../shared/upstream.ts";
import { dialectOf, type Probe } from "./dialects.ts";
import { toBackendModel } from "./model-facts.ts";
import type { OpenaiCompatibleSettings } from "./options.ts";
import { type Learn, lookAt } from "./probe.ts";

/** A server that is away or loading is looked at this often, in milliseconds. */
const awayIntervalMs = 2_000;

/** What the server serves, looked at again and again. */
export function createModelList(
  settings: OpenaiCompatibleSettings,
  upstream: Upstream,
  problems: RuntimeProblems,
): ModelWatch<ModelFacts> {
  const { id, kind, logger, probeIntervalMs } = settings;
  const dialect = dialectOf(kind);
  const remembered = new Map<Probe, Learn>();
  return new ModelWatch<ModelFacts>({
    id,
    kind,
    logger,
    problems,
    probeIntervalMs,
    awayIntervalMs: () => awayIntervalMs,
    known: namedModels(settings.models),
    startHint: dialect.startHint,
    render: (facts, state, createdAtMs) => toBackendModel(facts, state, settings, dialect, createdAtMs),
    async look(signal) {
      try {
        return await lookAt({ upstream, settings, dialect, signal, remembered });
      } catch (error) {
        remembered.clear();
        throw error;
      }
    },
  });
}
