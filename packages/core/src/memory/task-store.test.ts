import { testTaskStore } from "../ports/task-store.suite.ts";
import { MemoryTaskStore } from "./task-store.ts";

testTaskStore("memory", async () => new MemoryTaskStore());
