import { CoreError } from "../problems/core-error.ts";
import type { ResolvedModel, Route } from "./catalog.ts";

/**
 * Routes that don't lead back to a service which the request came through: services that serve each other's models must
 * not send a request round in a circle.
 * @throws CoreError model-not-found when there is no other route.
 */
export function forwardRoutes({ model, routes }: ResolvedModel, via: readonly string[] = []): readonly Route[] {
  if (via.length === 0) return routes;
  const forward = routes.filter((route) => !route.model.via?.some((id) => via.includes(id)));
  if (forward.length > 0) return forward;
  const detail = `'${model.id}' is only reached here through a service that the request came from.`;
  throw new CoreError("model-not-found", detail, { model: model.id, param: "model" });
}
