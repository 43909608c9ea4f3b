import { describe, expect, it } from "vitest";
import type { SettingsStore } from "./settings-store.ts";

/** What every store of settings does alike. */
export function testSettingsStore(name: string, create: () => Promise<SettingsStore>): void {
  describe(`settings store: ${name}`, () => {
    it("keeps, replaces and deletes JSON values", async () => {
      const store = await create();
      expect(await store.get("a")).toBeUndefined();
      for (const value of ["text", 0, false, null, ["x", { y: "😀" }]]) {
        await store.set("a", value);
        expect(await store.get("a")).toEqual(value);
      }
      await store.set("a", undefined);
      expect(await store.get("a")).toBeUndefined();
    });

    it("keeps the value as it was when it was set", async () => {
      const store = await create();
      const value = { list: [1] };
      await store.set("a", value);
      value.list.push(2);
      expect(await store.get("a")).toEqual({ list: [1] });
    });

    it("names what begins with a prefix, sorted, taking no sign for a pattern", async () => {
      const store = await create();
      for (const settingName of ["runtime/b", "runtime/a", "runtimes", "run%", "runtime%c"])
        await store.set(settingName, 1);
      expect(await store.names("runtime/")).toEqual(["runtime/a", "runtime/b"]);
      expect(await store.names("run%")).toEqual(["run%"]);
      expect(await store.names("")).toEqual(["run%", "runtime%c", "runtime/a", "runtime/b", "runtimes"]);
    });
  });
}
