import { Ollama } from "ollama";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chatModel, type Json, measured, type RunningService, skipReason, startService, waitFor } from "./service.ts";

/** One request seen from all sides: made through one door, watched and cancelled through another. */
describe.skipIf(skipReason !== undefined)("one core", () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.stop());

  it("a chat of the ollama client is listed, read while it runs, and cancelled through LMSP", async () => {
    const client = new Ollama({ host: service.url });
    const stream = await client.chat({
      model: "smollm2",
      messages: [{ role: "user", content: "Write many numbers." }],
      // An answer that can't end early.
      format: { type: "array", items: { type: "integer", minimum: 0, maximum: 99 }, minItems: 500 },
      stream: true,
    });
    let received = "";
    let cancelledAt = 0;
    let endedAt = 0;
    const reading = (async () => {
      try {
        for await (const part of stream) received += part.message.content;
        return undefined;
      } catch (error) {
        return error;
      } finally {
        endedAt = performance.now();
      }
    })();
    await waitFor(() => (received.length > 20 ? true : undefined));

    const list = await service.json("/lmsp/v1/responses?status=in_progress&door=ollama");
    expect(list.body.data).toHaveLength(1);
    const { id, model } = list.body.data[0];
    expect(model).toBe(chatModel);

    const events = await fetch(`${service.url}/lmsp/v1/responses/${id}/events`);
    const watched = readEvents(events);
    await waitFor(() => (watched.text().length > received.length / 2 && watched.text() !== "" ? true : undefined));

    cancelledAt = performance.now();
    const cancelled = await service.json(`/lmsp/v1/responses/${id}/cancel`, { method: "POST" });
    const answeredAt = performance.now();
    expect(cancelled.body.status).toBe("cancelled");
    const error = await reading;
    expect(String(error)).toMatch(/cancelled/i);
    await waitFor(() => (watched.hasEnded() ? true : undefined));
    expect(watched.types().at(-1)).toBe("response.cancelled");
    expect(watched.text().startsWith(received) || received.startsWith(watched.text())).toBe(true);
    await waitFor(async () => ((await service.metric("plenum_running")) === 0 ? true : undefined));
    const freeAt = performance.now();
    measured("cancel call answered after", `${(answeredAt - cancelledAt).toFixed(0)} ms`);
    measured("client's stream ended after", `${(endedAt - cancelledAt).toFixed(0)} ms`);
    measured("engine's slot free after (asked by polling)", `${(freeAt - cancelledAt).toFixed(0)} ms`);
    expect(endedAt - cancelledAt).toBeLessThan(10_000);
  });

  it("names the same response through every door", async () => {
    const body = { model: "smollm2", messages: [{ role: "user", content: "Hi" }], max_tokens: 3 };
    const chat = await fetch(`${service.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const { id } = (await chat.json()) as { id: string };
    const header = chat.headers.get("x-lmsp-response-id");
    expect(id.replace("chatcmpl-", "resp_")).toBe(header);
    const seen = await service.json(`/lmsp/v1/responses/${header}`);
    expect(seen.body).toMatchObject({ id: header, door: "openai", model: chatModel });
  });
});

function readEvents(answer: globalThis.Response) {
  let raw = "";
  let ended = false;
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of answer.body ?? []) raw += decoder.decode(chunk, { stream: true });
    ended = true;
  })();
  const parsed = (): Json[] =>
    raw
      .split("\n\n")
      .slice(0, -1)
      .flatMap((block) => block.split("\n").filter((line) => line.startsWith("data: ")))
      .map((line) => JSON.parse(line.slice(6)));
  return {
    hasEnded: () => ended,
    types: () => parsed().map(({ type }) => type),
    text: () =>
      parsed()
        .filter(({ type }) => type === "response.output_text.delta")
        .map(({ delta }) => delta)
        .join(""),
  };
}
