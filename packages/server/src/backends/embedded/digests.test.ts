import { expect, test } from "vitest";
import { Digests } from "./digests.ts";

test("nothing is begun after it was closed, also not what was asked for before", async () => {
  const digests = new Digests(undefined);
  const asked = digests.of({ path: import.meta.filename ?? "x", sizeBytes: 1, modifiedMs: 1 });
  digests.close();
  expect(await asked).toBeUndefined();
  expect(await digests.of({ path: "y", sizeBytes: 1, modifiedMs: 1 })).toBeUndefined();
});
