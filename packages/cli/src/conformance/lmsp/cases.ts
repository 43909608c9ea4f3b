import type { Case } from "./case.ts";
import { accessCases } from "./cases/access.ts";
import { catalogCases } from "./cases/catalog.ts";
import { compatibilityCases } from "./cases/compatibility.ts";
import { discoveryCases } from "./cases/discovery.ts";
import { eventCases } from "./cases/events.ts";
import { problemCases } from "./cases/problems.ts";
import { responseCases } from "./cases/responses.ts";
import { taskCases } from "./cases/tasks.ts";

/** Everything that is judged, in the order of LMSP's sections. */
export const cases: readonly Case[] = [
  ...discoveryCases,
  ...accessCases,
  ...problemCases,
  ...catalogCases,
  ...responseCases,
  ...eventCases,
  ...taskCases,
  ...compatibilityCases,
];
