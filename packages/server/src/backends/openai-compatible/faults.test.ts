import { upstreamKey } from "../shared/testing/faults.ts";
import { testFaults } from "../shared/testing/test-faults.ts";
import { createOpenaiCompatibleBackend } from "./index.ts";

testFaults({
  api: "openai",
  create: (options) => createOpenaiCompatibleBackend({ ...options, apiKey: upstreamKey, loadTimeoutMs: 0 }),
});
