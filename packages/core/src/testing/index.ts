export { ManualClock } from "./manual-clock.ts";
export { type ScriptedAnswer, ScriptedBackend, scriptedModel, textAnswer } from "./scripted-backend.ts";
export { createTestCore, type TestCoreOptions, testCaller, testSha256 } from "./test-core.ts";
