import type { Operation } from "../../shared/door.ts";
import type { ServiceFacts } from "../service-document.ts";
import { metricsOperations } from "./metrics.ts";
import { modelOperations } from "./models.ts";
import { nearbyOperations } from "./nearby.ts";
import { openapiOperation } from "./openapi.ts";
import { principalOperations } from "./principals.ts";
import { responseOperations } from "./responses.ts";
import { runtimeOperations } from "./runtimes.ts";
import { serviceOperations } from "./service.ts";
import { serviceEventOperations } from "./service-events.ts";
import { taskOperations } from "./tasks.ts";
import { tokenOperations } from "./tokens.ts";

/** Every operation of the native interface, a file for each resource. */
export function createOperations(facts: ServiceFacts): readonly Operation[] {
  const operations: readonly Operation[] = [
    ...serviceOperations(facts),
    openapiOperation(facts.version, () => operations),
    ...modelOperations,
    ...responseOperations,
    ...taskOperations,
    ...runtimeOperations,
    ...nearbyOperations,
    ...principalOperations,
    ...tokenOperations,
    ...serviceEventOperations(facts.history),
    ...metricsOperations(facts.history),
  ];
  return operations;
}
