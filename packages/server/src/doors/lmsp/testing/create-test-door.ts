import { systemClock } from "@plenum/core";
import { MetricsHistory } from "../../../metrics/history.ts";
import type { Door } from "../../shared/door.ts";
import { createLmspDoor, type ServiceFacts } from "../index.ts";

/** The native door of a service of which a test needs to know no more than it says here. */
export function createTestDoor(facts: Partial<ServiceFacts> = {}): Door {
  return createLmspDoor({
    history: new MetricsHistory(systemClock),
    id: "9b1d0000-0000-4000-8000-000000000000",
    instance: "a1",
    name: "studio",
    version: "0.1.0",
    limits: { requestBytes: 1024, eventRetentionS: 60 },
    interfaces: () => [],
    ...facts,
  });
}
