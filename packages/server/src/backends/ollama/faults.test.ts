import { upstreamKey } from "../shared/testing/faults.ts";
import { testFaults } from "../shared/testing/test-faults.ts";
import { createOllamaBackend } from "./index.ts";

testFaults({
  api: "ollama",
  create: (options) => createOllamaBackend({ ...options, headers: { authorization: `Bearer ${upstreamKey}` } }),
});
