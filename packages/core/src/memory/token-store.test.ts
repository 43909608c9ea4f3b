import { testTokenStore } from "../ports/token-store.suite.ts";
import { MemoryTokenStore } from "./token-store.ts";

testTokenStore("memory", async () => new MemoryTokenStore());
