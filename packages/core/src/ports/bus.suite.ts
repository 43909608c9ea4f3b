import { describe, expect, it } from "vitest";
import type { Bus } from "./bus.ts";

/** What every bus does alike. */
export function testBus(name: string, create: () => Promise<Bus>): void {
  describe(`bus: ${name}`, () => {
    it("reaches every subscriber of the topic until it leaves", async () => {
      const bus = await create();
      const heard: string[] = [];
      const leave = bus.subscribe("response.cancel", (id) => heard.push(`1:${id}`));
      bus.subscribe("response.cancel", (id) => heard.push(`2:${id}`));
      bus.subscribe("response.changed", (id) => heard.push(`other:${id}`));
      bus.publish("response.cancel", "a");
      await expect.poll(() => heard).toEqual(["1:a", "2:a"]);
      leave();
      bus.publish("response.cancel", "b");
      await expect.poll(() => heard).toEqual(["1:a", "2:a", "2:b"]);
    });
  });
}
