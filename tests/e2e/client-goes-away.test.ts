import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatModel,
  endless,
  longPrompt,
  measured,
  post,
  type RunningService,
  skipReason,
  startService,
  waitFor,
} from "./service.ts";

/** A client that goes away frees the engine's slot, wherever its request was. */
describe.skipIf(skipReason !== undefined)("a client goes away", () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service?.stop());

  const chat = (content: string, stream: boolean) => ({
    model: chatModel,
    messages: [{ role: "user", content }],
    max_tokens: 4_000,
    ...endless,
    stream,
  });
  const running = () => service.metric("plenum_running");
  const queued = () => service.metric("plenum_queue_length");

  /** Milliseconds from the abort until nothing runs, by polling. */
  async function timeToFree(abort: AbortController): Promise<number> {
    const abortedAt = performance.now();
    abort.abort();
    await waitFor(async () => ((await running()) === 0 && (await queued()) === 0 ? true : undefined));
    return performance.now() - abortedAt;
  }

  it.each([
    ["while it streams", "Write a very long story.", true, 300],
    ["while it waits for the whole", "Write a very long story.", false, 300],
    ["in a prompt of 1,000 tokens, streaming", longPrompt, true, 120],
    ["in a prompt of 1,000 tokens, whole", longPrompt, false, 120],
  ])("%s", async (name, content, stream, afterMs) => {
    const abort = new AbortController();
    const sent = fetch(
      `${service.url}/v1/chat/completions`,
      post(chat(`${Math.random()} ${content}`, stream), abort.signal),
    );
    const ended = sent.then((answer) => answer.text()).catch((error: Error) => error.name);
    await waitFor(async () => ((await running()) === 1 ? true : undefined));
    await new Promise((done) => setTimeout(done, afterMs));
    expect(await running()).toBe(1);
    const freeAfter = await timeToFree(abort);
    expect(await ended).toBe("AbortError");
    measured(`slot free after the client left ${name}`, `${freeAfter.toFixed(0)} ms`);
    // The whole answer would take far longer; the time itself is printed, not judged: machines are shared.
    expect(freeAfter).toBeLessThan(10_000);
    const list = await service.json("/lmsp/v1/responses?limit=1");
    expect(list.body.data[0]).toMatchObject({ status: "cancelled", problem: { reason: "disconnected" } });
  });

  it("while queued: it never reaches the engine, and those before it are not disturbed", async () => {
    const first = new AbortController();
    const blockers = Array.from({ length: 4 }, (_, index) =>
      fetch(`${service.url}/v1/chat/completions`, post(chat(`${index} Write a long story.`, true), first.signal))
        .then((answer) => answer.text().catch(() => "aborted"))
        .catch(() => "aborted"),
    );
    await waitFor(async () => ((await running()) === 4 ? true : undefined));
    const abort = new AbortController();
    const waiting = fetch(
      `${service.url}/api/chat`,
      post({ model: chatModel, messages: [{ role: "user", content: "Hi" }] }, abort.signal),
    ).catch((error: Error) => error.name);
    await waitFor(async () => ((await queued()) === 1 ? true : undefined));
    const abortedAt = performance.now();
    abort.abort();
    await waitFor(async () => ((await queued()) === 0 ? true : undefined));
    measured("place in the queue free after", `${(performance.now() - abortedAt).toFixed(0)} ms`);
    expect(await waiting).toBe("AbortError");
    expect(await running()).toBe(4);
    const list = await service.json("/lmsp/v1/responses?limit=1&door=ollama");
    expect(list.body.data[0].status).toBe("cancelled");
    expect(list.body.data[0].started_at).toBeUndefined();
    const freeAfter = await timeToFree(first);
    measured("four slots free after their clients left", `${freeAfter.toFixed(0)} ms`);
    await Promise.all(blockers);
  });
});
