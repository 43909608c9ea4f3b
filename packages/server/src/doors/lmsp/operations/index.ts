import type { Operation } from "../../shared/door.ts";
import type { ServiceFacts } from "../service-document.ts";
import { modelOperations } from "./models.ts";
import { responseOperations } from "./responses.ts";
import { serviceOperations } from "./service.ts";

/** Every operation of the native interface, a file for each resource. */
export function createOperations(facts: ServiceFacts): readonly Operation[] {
  return [...serviceOperations(facts), ...modelOperations(facts.instance), ...responseOperations];
}
