import { testBus } from "../ports/bus.suite.ts";
import { MemoryBus } from "./bus.ts";

testBus("memory", async () => new MemoryBus());
