import { expect, test } from "vitest";
import { abortable } from "./abortable.ts";

test("a wait that was given up before it began leaves no unhandled rejection behind", async () => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  let fail: (error: Error) => void = () => {};
  const work = new Promise<never>((_resolve, reject) => {
    fail = reject;
  });
  await expect(abortable(work, AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  fail(new Error("late"));
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});
