import { type Core, requireScope, toCoreError } from "@plenum/core";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { renderProblem } from "../doors/lmsp/errors.ts";
import { bearerIn } from "../doors/shared/bearer.ts";

/** What operators and their tools ask of a service. */
export interface OperatorFacts {
  /** True from the moment that the first model could answer. */
  isReady(): boolean;
  /** Metrics in Prometheus' text format. */
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/**
 * `/healthz` (the process answers), `/readyz` (a model answers), `/metrics` (scope `read` from the first token on).
 * @param addressOf the client's address.
 */
export function addOperatorRoutes(
  app: FastifyInstance,
  core: Core,
  facts: OperatorFacts,
  addressOf: (request: FastifyRequest) => string,
): void {
  app.get("/healthz", () => ({ status: "ok" }));

  app.get("/readyz", (_request, reply) => {
    const state = core.responses.isDraining ? "draining" : facts.isReady() ? "ready" : "loading";
    return reply.code(state === "ready" ? 200 : 503).send({ status: state });
  });

  app.get("/metrics", async (request, reply) => {
    try {
      const bearer = bearerIn(request.headers.authorization);
      requireScope(core.authenticator.authenticate(bearer, addressOf(request)).principal, "read");
    } catch (error) {
      const { status, headers, body } = renderProblem(toCoreError(error), request.id);
      return reply.code(status).headers(headers).send(body);
    }
    const { contentType, text } = await facts.metrics();
    return reply.header("content-type", contentType).send(text);
  });
}
