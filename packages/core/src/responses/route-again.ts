import type { Catalog, Route } from "../catalog/catalog.ts";
import { forwardRoutes } from "../catalog/forward-routes.ts";
import { requireAvailable } from "../catalog/require-capabilities.ts";
import type { Clock } from "../ports/clock.ts";
import { CoreError } from "../problems/core-error.ts";
import type { ResponseRequest } from "../request/request.ts";

/** Milliseconds that a response of an earlier process waits for a runtime that is not there yet. */
const waitMs = 60_000;

/**
 * Where a model runs, after a start of the service: runtimes begin with it, and one that is not there yet is waited for.
 * @throws CoreError model-not-found, backend-unavailable when it is not there in time.
 */
export async function findRouteAgain(
  catalog: Catalog,
  clock: Clock,
  model: string,
  via: ResponseRequest["via"],
): Promise<Route> {
  await catalog.ready;
  const until = clock.now() + waitMs;
  for (;;) {
    try {
      const resolved = catalog.resolve(model);
      requireAvailable(resolved.model);
      const [route] = forwardRoutes(resolved, via);
      if (route === undefined) throw new CoreError("internal", `'${model}' has no runtime.`);
      return route;
    } catch (error) {
      if (clock.now() >= until) throw error;
      await nextChange(catalog, clock, until);
    }
  }
}

function nextChange(catalog: Catalog, clock: Clock, untilMs: number): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      stopWatch();
      stopTimer();
      resolve();
    };
    const stopWatch = catalog.onChange(end);
    const stopTimer = clock.after(untilMs - clock.now(), end);
  });
}
