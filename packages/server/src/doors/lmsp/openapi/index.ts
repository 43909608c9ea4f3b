import { systemClock } from "@plenum/core";
import { MetricsHistory } from "../../../metrics/history.ts";
import { createOperations } from "../operations/index.ts";
import { createDocument } from "./document.ts";

/** Version of the product that the committed document names. */
const version = "0.1.0";

/** The document as it is committed: of no service in particular. */
export function createOpenapiDocument(): Record<string, unknown> {
  const operations = createOperations({
    history: new MetricsHistory(systemClock),
    id: "",
    instance: "",
    name: "",
    version,
    limits: { requestBytes: 0, eventRetentionS: 0 },
    interfaces: () => [],
  });
  return createDocument(operations, version);
}
