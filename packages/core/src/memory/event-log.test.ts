import { testEventLog } from "../ports/event-log.suite.ts";
import { MemoryEventLog } from "./event-log.ts";

testEventLog("memory", (limits) => new MemoryEventLog(limits));
