import { describe, expect, test } from "vitest";
import { Slots } from "./slots.ts";

/** Writes down what is done to the cache. */
function recordingSlots(
  count: number,
  canRemove = true,
  window: { tokens: number; firstHeld: number } | undefined = undefined,
) {
  const calls: string[] = [];
  const slots = new Slots<string>(
    {
      disposeSequence: (id) => void calls.push(`dispose ${id}`),
      removeTokenCellsFromSequence: (id, start) => {
        calls.push(`remove ${id} from ${start}`);
        return canRemove;
      },
      copySequenceStateFromOtherSequence: async (target, source) => {
        calls.push(`copy ${source} to ${target}`);
        return 0;
      },
      getSequenceKvCacheMinPosition: () => window?.firstHeld ?? 0,
    },
    count,
    window?.tokens,
  );
  return { slots, calls };
}

const prompt = Array.from({ length: 40 }, (_, index) => index);

describe("Slots", () => {
  test("hands out each once, lowest first, then none", async () => {
    const { slots } = recordingSlots(2);
    expect((await slots.take("a", prompt))?.id).toBe(0);
    expect((await slots.take("b", prompt))?.id).toBe(1);
    expect(await slots.take("c", prompt)).toBeUndefined();
    expect(slots.hasFree).toBe(false);
  });

  test("keeps what a free cache has in common with the prompt, but never the last token", async () => {
    const { slots, calls } = recordingSlots(2);
    const slot = await slots.take("a", prompt);
    slot?.cache.push(...prompt, 99);
    if (slot !== undefined) slots.release(slot);
    const again = await slots.take("b", prompt);
    expect(again?.id).toBe(0);
    expect(again?.cache).toEqual(prompt.slice(0, 39));
    expect(calls.at(-1)).toBe("remove 0 from 39");
  });

  test("copies from a busy one", async () => {
    const { slots, calls } = recordingSlots(2);
    (await slots.take("a", prompt))?.cache.push(...prompt);
    const second = await slots.take("b", prompt);
    expect(second?.cache).toHaveLength(39);
    expect(calls).toContain("copy 0 to 1");
  });

  test("a few equal tokens are not worth it", async () => {
    const { slots } = recordingSlots(1);
    const slot = await slots.take("a", prompt);
    slot?.cache.push(...prompt.slice(0, 10), 77);
    if (slot !== undefined) slots.release(slot);
    expect((await slots.take("b", prompt))?.cache).toEqual([]);
  });

  test("starts anew where the model can't drop a part", async () => {
    const { slots, calls } = recordingSlots(1, false);
    const slot = await slots.take("a", prompt);
    slot?.cache.push(...prompt, 99);
    if (slot !== undefined) slots.release(slot);
    expect((await slots.take("b", prompt))?.cache).toEqual([]);
    expect(calls.at(-1)).toBe("dispose 0");
  });

  test.each([
    ["goes on where the sliding window is still held", 10, 29, 39],
    ["starts anew where a part of it is forgotten", 10, 30, 0],
    ["goes on from the beginning of the cache", 100, 0, 39],
  ])("%s", async (_name, tokens, firstHeld, kept) => {
    const { slots } = recordingSlots(1, true, { tokens, firstHeld });
    const slot = await slots.take("a", prompt);
    slot?.cache.push(...prompt, 99);
    if (slot !== undefined) slots.release(slot);
    expect((await slots.take("b", prompt))?.cache).toHaveLength(kept);
  });

  test("closes gaps by moving the highest down", async () => {
    const { slots } = recordingSlots(4);
    for (const owner of ["a", "b", "c", "d"]) await slots.take(owner, [owner.length]);
    for (const slot of slots.busy.filter((busy) => busy.owner === "b" || busy.owner === "c")) slots.release(slot);
    const moves: string[] = [];
    await slots.closeGaps((owner, slot) => moves.push(`${owner} to ${slot.id}`));
    expect(moves).toEqual(["d to 1"]);
    expect(slots.busy.map((slot) => slot.id)).toEqual([0, 1]);
  });
});
