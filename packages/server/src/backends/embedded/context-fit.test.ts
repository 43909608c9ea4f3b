import { expect, test } from "vitest";
import { fitContext, neededBytes } from "./context-fit.ts";

const mib = 1024 * 1024;
const model = {
  trainedContextTokens: 8_192,
  wantedContextTokens: undefined,
  cacheBytesPerToken: 23_040,
  parallel: 4,
  weightsBytes: 94 * mib,
  budgetBytes: 16_000 * mib,
};

test.each([
  ["as trained where it fits", {}, 8_192],
  ["lowered to fit, in steps of 256", { budgetBytes: 700 * mib }, 3_840],
  ["no less than 256", { budgetBytes: 1 }, 256],
  ["as asked for", { wantedContextTokens: 1_000 }, 1_000],
  ["no more than trained", { wantedContextTokens: 100_000 }, 8_192],
  ["asked for and lowered", { wantedContextTokens: 4_096, budgetBytes: 500 * mib }, 1_536],
  ["not known what it was trained on", { trainedContextTokens: undefined }, 4_096],
  ["no cache, no limit", { trainedContextTokens: 512, cacheBytesPerToken: 0, budgetBytes: 1 }, 512],
])("%s", (_name, changes, tokens) => {
  expect(fitContext({ ...model, ...changes })).toBe(tokens);
});

test("what fits the budget needs no more than it", () => {
  for (let budgetMib = 400; budgetMib < 1_500; budgetMib += 50) {
    const budgetBytes = budgetMib * mib;
    expect(neededBytes({ ...model, contextTokens: fitContext({ ...model, budgetBytes }) })).toBeLessThanOrEqual(
      budgetBytes,
    );
  }
});
