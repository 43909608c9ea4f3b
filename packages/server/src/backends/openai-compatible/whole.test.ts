/** Answers that are asked for in one piece. */
import { afterEach, expect, it } from "vitest";
import { jsonAnswer } from "../shared/testing/replay-upstream.ts";
import { chunk, recorded, routes, run, type Setup, setUp, sseAnswer } from "./testing/fixtures.ts";

let setup: Setup | undefined;
afterEach(async () => {
  await setup?.close();
  setup = undefined;
});

const paris = '{\n    "city": "Paris"\n  }';

it.each<[string, string, Parameters<typeof run>[1], object, object]>([
  [
    "llama-server-0.6.0/chat-logprobs",
    "llama-server",
    { sampling: { logprobs: 2 } },
    { text: "1.", finishes: ["length"] },
    { usage: { inputTokens: 34, outputTokens: 2, cachedInputTokens: 24, reasoningTokens: 0 }, promptMs: 137.809 },
  ],
  [
    "llama-server-0.6.0/tools-call-parallel",
    "llama-server",
    {},
    {
      text: "",
      calls: [
        { name: "get_weather", callId: "kBdurBBmej9DEY3gENEHZyl4cOyt3Ffe", arguments: paris },
        { name: "get_weather", callId: "Vmvb22iQfRykzyjhZDrwuMMZoB0oifgS", arguments: paris },
      ],
    },
    { usage: { inputTokens: 125, outputTokens: 70, cachedInputTokens: 124, reasoningTokens: 0 } },
  ],
  [
    "vllm-0.32.0/chat-tools-strict-required",
    "vllm",
    {},
    {
      calls: [{ name: "get_weather", callId: "chatcmpl-tool-92aac6f88f1cab36", arguments: '{"city": "Paris"}' }],
      finishes: ["tool_calls"],
    },
    { usage: { inputTokens: 138, outputTokens: 36, cachedInputTokens: 0, reasoningTokens: 0 } },
  ],
])("reads %s", async (path, kind, changes, expected, usage) => {
  setup = await setUp(routes({ "/v1/chat/completions": () => recorded(path) }), { kind });
  const answer = await run(setup.backend, { ...changes, delivery: "whole" });
  expect(answer).toMatchObject(expected);
  expect(answer.events[0]).toEqual({ type: "accepted", isWhole: true });
  expect(answer.events.at(-1)).toMatchObject(usage);
  expect(answer.events.filter(({ type }) => type === "accepted")).toHaveLength(1);
  const logprobs = answer.events.flatMap((event) => (event.type === "text" ? (event.logprobs ?? []) : []));
  expect(logprobs.map(({ token, top }) => [token, top.length])).toEqual(
    changes?.sampling === undefined
      ? []
      : [
          ["1", 2],
          [".", 2],
        ],
  );
  expect(setup.upstream.requests.at(-1)?.body).toMatchObject({ stream: false });
});

it("is no whole one for several candidates, of which a server may count only one", async () => {
  const choice = (index: number, delta: object, finish_reason: string | null = null) => ({
    choices: [{ index, delta, finish_reason }],
  });
  const pieces = [0, 1].flatMap((index) => ["a", "b", "c"].map((content) => choice(index, { content })));
  const ends = [choice(0, {}, "stop"), choice(1, {}, "stop")];
  const usage = { choices: [], usage: { prompt_tokens: 2, completion_tokens: 3 } };
  setup = await setUp(routes({ "/v1/chat/completions": () => sseAnswer([...pieces, ...ends, usage, "[DONE]"]) }));
  const answer = await run(setup.backend, { candidates: 2, delivery: "whole" });
  expect(setup.upstream.requests.at(-1)?.body).toMatchObject({ n: 2, stream: true });
  expect(answer.events.at(-1)).toMatchObject({ usage: { inputTokens: 2, outputTokens: 6 } });
});

it("comes once more after a refusal of its bound, and is accepted once", async () => {
  const refusals = [jsonAnswer({ error: { message: "max_tokens is too large: 9", code: 400 } }, 400)];
  const whole = { choices: [{ index: 0, message: { content: "yes" }, finish_reason: "stop" }], usage: {} };
  setup = await setUp(routes({ "/v1/chat/completions": () => refusals.pop() ?? jsonAnswer(whole) }));
  const output = { format: { type: "text" }, maxTokens: 9 } as const;
  const answer = await run(setup.backend, { output, delivery: "whole" });
  expect(answer).toMatchObject({ text: "yes", finishes: ["stop"] });
  expect(answer.events.map(({ type }) => type)).toEqual(["accepted", "text", "finish", "usage"]);
  expect(setup.upstream.requests.at(-1)?.body).not.toHaveProperty("max_tokens");
});

it("is taken as well when the server streams all the same", async () => {
  setup = await setUp(
    routes({ "/v1/chat/completions": () => sseAnswer([chunk({ content: "yes" }), chunk({}, "stop"), "[DONE]"]) }),
  );
  expect(await run(setup.backend, { delivery: "whole" })).toMatchObject({ text: "yes", finishes: ["stop"] });
});
