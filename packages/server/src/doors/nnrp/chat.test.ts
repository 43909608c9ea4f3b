import { expect, it } from "vitest";
import { chat, messages, read, setUp } from "./testing/set-up.ts";

it("streams a chat", async () => {
  const bench = setUp();
  const session = await bench.session();
  const { partials, terminal, end } = await read(session.submit({ body: chat() }));
  expect(partials).toEqual([
    { type: "response.output_text.delta", index: 0, delta: "Hel" },
    { type: "response.output_text.delta", index: 0, delta: "lo" },
    expect.objectContaining({
      type: "response.usage",
      usage: expect.objectContaining({
        input_tokens: 3,
        prompt_tokens: 3,
        output_tokens: 2,
        completion_tokens: 2,
        total_tokens: 5,
      }),
    }),
  ]);
  expect(terminal).toMatchObject({
    type: "response.completed",
    body: { object: "chat.completion", choices: [{ message: { content: "Hello" }, finish_reason: "stop" }] },
  });
  expect(end).toMatchObject({ type: "result", status: 200 });
  expect([bench.problems, bench.faults]).toEqual([[], []]);
});

it("answers a chat in one piece", async () => {
  const client = await setUp().client();
  const answer = await client.chat.create({ model: "m-tiny", messages });
  expect(answer).toMatchObject({ object: "chat.completion", choices: [{ message: { content: "Hello" } }] });
});
