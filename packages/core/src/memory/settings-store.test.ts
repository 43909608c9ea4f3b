import { testSettingsStore } from "../ports/settings-store.suite.ts";
import { MemorySettingsStore } from "./settings-store.ts";

testSettingsStore("memory", async () => new MemorySettingsStore());
