import { testLeases } from "../ports/lease.suite.ts";
import { MemoryLeases } from "./leases.ts";

testLeases("memory", async () => new MemoryLeases());
