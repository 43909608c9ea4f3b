export { type BackendUnderTest, testBackend } from "../ports/backend.suite.ts";
export { testBus } from "../ports/bus.suite.ts";
export { testEventLog } from "../ports/event-log.suite.ts";
export { testLeases } from "../ports/lease.suite.ts";
export { testStore } from "../ports/store.suite.ts";
export { ManualClock } from "./manual-clock.ts";
export { type ScriptedAnswer, ScriptedBackend, scriptedModel, textAnswer } from "./scripted-backend.ts";
export { createTestCore, type TestCoreOptions, testCaller, testSha256 } from "./test-core.ts";
