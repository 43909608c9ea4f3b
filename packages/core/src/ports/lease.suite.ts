import { describe, expect, it } from "vitest";
import type { Leases } from "./lease.ts";

/** What every source of leases does alike. */
export function testLeases(name: string, create: () => Promise<Leases>): void {
  describe(`leases: ${name}`, () => {
    it("gives a thing to one holder at a time, with a growing epoch", async () => {
      const leases = await create();
      const first = await leases.acquire("a");
      expect(await leases.acquire("a")).toBeUndefined();
      expect(await leases.acquire("b")).toBeDefined();
      await first?.release();
      const second = await leases.acquire("a");
      expect(second?.epoch).toBeGreaterThan(first?.epoch ?? Number.POSITIVE_INFINITY);
      second?.onLost(() => expect.unreachable("nobody else may have taken it over"));
    });
  });
}
