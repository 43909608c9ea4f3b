import { testStore } from "../ports/store.suite.ts";
import { MemoryStore } from "./store.ts";

testStore("memory", async () => new MemoryStore());
