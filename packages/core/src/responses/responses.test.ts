import { describe, expect, it } from "vitest";
import type { Caller } from "../auth/principal.ts";
import type { ResponseEvent } from "../events/response-events.ts";
import { createMemoryStorage } from "../memory/storage.ts";
import { MemoryStore } from "../memory/store.ts";
import type { LogReader } from "../ports/event-log.ts";
import { type ResponseChanges, type ResponseRequest, requestDefaults } from "../request/request.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { type ScriptedAnswer, ScriptedBackend, scriptedModel, textAnswer } from "../testing/scripted-backend.ts";
import { createTestCore, type TestCoreOptions, testCaller } from "../testing/test-core.ts";

const request: ResponseRequest = {
  ...requestDefaults,
  model: "m",
  input: { kind: "items", items: [{ type: "message", role: "user", content: [{ type: "text", text: "Hi" }] }] },
};

const caller = (id: string, changes: Partial<Caller["principal"]> = {}): Caller => ({
  principal: { id, scopes: new Set(["read", "infer"]), ...changes },
  fairnessKey: `principal:${id}`,
});

/** Runs until it is told to go on or is aborted. */
function gatedAnswer(): { readonly answer: ScriptedAnswer; readonly open: () => void } {
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    open: () => open(),
    answer: async function* (_request, signal) {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }];
      await Promise.race([
        gate,
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      ]);
      yield [
        { type: "text", candidate: 0, delta: "b" },
        { type: "finish", candidate: 0, finishReason: "stop" },
      ];
    },
  };
}

function setUp(options: Partial<TestCoreOptions> & { readonly parallel?: number } = {}) {
  const clock = new ManualClock();
  const store = new MemoryStore();
  const limits = { bytesPerResponse: 8_388_608, bytesTotal: 268_435_456, ...options.limits };
  const storage = { ...createMemoryStorage(limits), responses: store };
  const model = scriptedModel("m", { limits: { contextTokens: 100, parallel: options.parallel ?? 4 } });
  const backend = new ScriptedBackend("b", [model]);
  const core = createTestCore({ backends: [backend], clock, storage, ...options });
  return { clock, backend, core, store, responses: core.responses };
}

function readAll(reader: LogReader | undefined): ResponseEvent[] {
  return reader?.take().map(({ event }) => event) ?? [];
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

describe("responses", () => {
  it("runs a request from acceptance to its end", async () => {
    const { responses, backend } = setUp();
    backend.answer = textAnswer(["Hel", "lo"], 7);
    const owned = await responses.create(request, testCaller, "lmsp");
    const response = await owned.done;
    expect(response).toMatchObject({
      id: owned.id,
      status: "completed",
      door: "lmsp",
      runtime: "b",
      output: [{ text: "Hello" }],
      usage: { inputTokens: 7, outputTokens: 2 },
    });
    expect(readAll(owned.read()).map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.output_item.done",
      "response.completed",
    ]);
  });

  it("ends as the backend ended: length, failure, silence", async () => {
    const { responses, backend } = setUp();
    const end = async (answer: ScriptedAnswer) => {
      backend.answer = answer;
      return (await responses.create(request, testCaller, "lmsp")).done;
    };
    expect(
      await end(function* () {
        yield [{ type: "finish", candidate: 0, finishReason: "length" }];
      }),
    ).toMatchObject({ status: "incomplete", incompleteReason: "max_tokens" });
    expect(
      await end(() => {
        throw new TypeError("a bug");
      }),
    ).toMatchObject({ status: "failed", problem: { code: "internal" } });
    expect(
      await end(function* () {
        yield [{ type: "text", candidate: 0, delta: "x" }];
      }),
    ).toMatchObject({ status: "failed", problem: { code: "backend-error" }, output: [{ status: "incomplete" }] });
  });

  it.each(["queued", "running"] as const)("is cancelled while %s", async (state) => {
    const { responses, backend, core } = setUp({ parallel: 1 });
    backend.answer = gatedAnswer().answer;
    const first = await responses.create(request, testCaller, "lmsp");
    const second = await responses.create(request, testCaller, "lmsp");
    await settle();
    const target = state === "queued" ? second : first;
    expect((await responses.cancel(target.id, testCaller.principal)).status).toBe("cancelled");
    expect(await target.done).toMatchObject({ status: "cancelled", problem: { details: { reason: "requested" } } });
    expect(await responses.cancel(target.id, testCaller.principal)).toMatchObject({ status: "cancelled" });
    await settle();
    expect(backend.requests).toHaveLength(state === "queued" ? 1 : 2);
    expect(backend.aborted).toBe(state === "queued" ? 0 : 1);
    expect(core.scheduler).toMatchObject({ running: 1, queued: 0 });
  });

  it("counts what was made before it was cancelled (CAN-01)", async () => {
    const { responses, backend } = setUp();
    backend.answer = async function* (_request, signal) {
      yield [{ type: "accepted", inputTokens: 9 }];
      yield ["a", "b", "c"].map((delta) => ({ type: "text", candidate: 0, delta }));
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const owned = await responses.create(request, testCaller, "lmsp");
    await settle();
    await responses.cancel(owned.id, testCaller.principal);
    expect((await owned.done).usage).toMatchObject({ inputTokens: 9, outputTokens: 3 });
  });

  it("fails at its deadline, queued or running, and never reaches a backend when it was queued", async () => {
    const { responses, backend, clock } = setUp({ parallel: 1 });
    backend.answer = gatedAnswer().answer;
    const deadlineMs = clock.now() + 500;
    const running = await responses.create({ ...request, deadlineMs }, testCaller, "lmsp");
    const queued = await responses.create({ ...request, deadlineMs: deadlineMs - 100 }, testCaller, "lmsp");
    await settle();
    clock.advance(500);
    expect((await running.done).problem?.code).toBe("deadline-exceeded");
    expect((await queued.done).problem?.code).toBe("deadline-exceeded");
    await settle();
    expect(backend.requests).toHaveLength(1);
    expect(backend.running).toBe(0);
  });

  describe("a change after acceptance", () => {
    it("moves one that waits to the front, within the caller's top priority", async () => {
      const { responses, backend } = setUp({ parallel: 1 });
      const gate = gatedAnswer();
      backend.answer = gate.answer;
      await responses.create(request, testCaller, "lmsp");
      const second = await responses.create({ ...request, metadata: { name: "second" } }, testCaller, "lmsp");
      const third = await responses.create({ ...request, metadata: { name: "third" } }, testCaller, "lmsp");
      const { principal } = testCaller;
      expect(await responses.change(third.id, { priority: 8 }, { ...principal, topPriority: 3 })).toMatchObject({
        priority: 3,
        status: "queued",
      });
      expect((await responses.get(third.id, principal)).response.priority).toBe(3);
      backend.answer = textAnswer(["ok"]);
      gate.open();
      await third.done;
      await second.done;
      expect(backend.requests.map(({ metadata }) => metadata["name"])).toEqual([undefined, "third", "second"]);
      expect(backend.requests[1]).toMatchObject({ priority: 3 });
    });

    it.each(["queued", "running"] as const)("sets the deadline of a %s one anew, sooner or later", async (state) => {
      const { responses, backend, clock } = setUp({ parallel: 1 });
      backend.answer = gatedAnswer().answer;
      const first = await responses.create({ ...request, deadlineMs: clock.now() + 100_000 }, testCaller, "lmsp");
      const second = await responses.create({ ...request, deadlineMs: clock.now() + 100_000 }, testCaller, "lmsp");
      await settle();
      const target = state === "queued" ? second : first;
      const change = (deadlineMs: number) => responses.change(target.id, { deadlineMs }, testCaller.principal);
      const pending = clock.pending;
      await change(clock.now() + 200_000);
      clock.advance(150_000);
      expect((await responses.get(target.id, testCaller.principal)).response.finishedAt).toBeUndefined();
      expect(await change(clock.now() + 10)).toMatchObject({ deadlineMs: clock.now() + 10 });
      expect(clock.pending).toBeLessThanOrEqual(pending);
      clock.advance(10);
      expect(await target.done).toMatchObject({ status: "failed", problem: { code: "deadline-exceeded" } });
    });

    it("bounds the output: in the request of one that waits, by its pieces in one that runs", async () => {
      const { responses, backend } = setUp({ parallel: 1 });
      let aborted: unknown;
      backend.answer = async function* (_request, signal) {
        yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }];
        yield [{ type: "text", candidate: 0, delta: "b" }];
        await new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => {
            aborted = signal.reason;
            reject(signal.reason);
          }),
        );
      };
      const running = await responses.create(request, testCaller, "lmsp");
      const queued = await responses.create(request, testCaller, "lmsp");
      await settle();
      await responses.change(queued.id, { maxTokens: 7 }, testCaller.principal);
      await responses.change(running.id, { maxTokens: 3 }, testCaller.principal);
      expect((await responses.get(running.id, testCaller.principal)).response.status).toBe("in_progress");
      backend.answer = textAnswer(["ok"]);
      await responses.change(running.id, { maxTokens: 2 }, testCaller.principal);
      expect(await running.done).toMatchObject({
        status: "incomplete",
        incompleteReason: "max_tokens",
        output: [{ text: "ab", status: "incomplete" }],
        usage: { outputTokens: 2 },
      });
      expect(aborted).toMatchObject({ code: "cancelled" });
      expect(await queued.done).toMatchObject({ status: "completed" });
      expect(backend.requests[1]?.output.maxTokens).toBe(7);
    });

    it.each([
      ["a later piece reaches the bound", 2, "incomplete", "ab"],
      ["the answer ends with the piece that reaches it", 3, "completed", "abc"],
    ])("%s", async (_name, maxTokens, status, text) => {
      const { responses, backend } = setUp();
      let open = (): void => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      backend.answer = async function* () {
        yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }];
        await gate;
        yield [{ type: "text", candidate: 0, delta: "b" }];
        yield [
          { type: "text", candidate: 0, delta: "c" },
          { type: "finish", candidate: 0, finishReason: "stop" },
        ];
      };
      const owned = await responses.create(request, testCaller, "lmsp");
      await settle();
      await responses.change(owned.id, { maxTokens }, testCaller.principal);
      open();
      expect(await owned.done).toMatchObject({ status, output: [{ text }] });
    });

    it("is refused for one that has ended, a passed deadline, a wrong value and a stranger", async () => {
      const { responses, backend, clock } = setUp();
      backend.answer = gatedAnswer().answer;
      const owned = await responses.create(request, testCaller, "lmsp");
      const change = (changes: ResponseChanges, principal = testCaller.principal) =>
        responses.change(owned.id, changes, principal);
      await expect(change({ deadlineMs: clock.now() })).rejects.toMatchObject({ code: "deadline-exceeded" });
      await expect(change({ priority: 9 })).rejects.toMatchObject({ details: { param: "priority" } });
      await expect(change({ priority: 1 }, caller("eve").principal)).rejects.toMatchObject({ code: "not-found" });
      expect((await responses.get(owned.id, testCaller.principal)).response).toMatchObject({ priority: 0 });
      await responses.cancel(owned.id, testCaller.principal);
      await expect(change({ priority: 1 })).rejects.toMatchObject({ code: "conflict" });
    });

    it("ends with deadline-exceeded whoever noticed that the deadline passed", async () => {
      const { responses, backend } = setUp();
      backend.answer = gatedAnswer().answer;
      const owned = await responses.create(request, testCaller, "nnrp");
      await settle();
      await responses.cancel(owned.id, testCaller.principal, "deadline");
      expect(await owned.done).toMatchObject({ status: "failed", problem: { code: "deadline-exceeded" } });
    });
  });

  it("with `cancel`, ends when its owner leaves, whoever watches", async () => {
    const { responses, backend } = setUp();
    backend.answer = gatedAnswer().answer;
    const owned = await responses.create(request, testCaller, "openai");
    await settle();
    await responses.events(owned.id, 0, testCaller.principal);
    owned.ownerLeft();
    expect((await owned.done).problem?.details.reason).toBe("disconnected");
  });

  it("with `continue`, waits the resume window for a reader and is then abandoned", async () => {
    const { responses, backend, clock } = setUp();
    const gate = gatedAnswer();
    backend.answer = gate.answer;
    const owned = await responses.create({ ...request, onDisconnect: "continue" }, testCaller, "lmsp");
    await settle();
    const first = owned.read();
    first.close();
    owned.ownerLeft();
    clock.advance(59_000);
    const second = await responses.events(owned.id, 1, testCaller.principal);
    clock.advance(120_000);
    expect((await responses.get(owned.id, testCaller.principal)).response.status).toBe("in_progress");
    second?.close();
    clock.advance(60_000);
    expect((await owned.done).problem?.details.reason).toBe("abandoned");
  });

  it("resumes at every event without gap or repeat", async () => {
    const { responses, backend } = setUp();
    backend.answer = textAnswer(["a", "b", "c"]);
    const owned = await responses.create(request, testCaller, "lmsp");
    await owned.done;
    const whole = readAll(owned.read());
    for (let after = 0; after < whole.length; after += 1) {
      const reader = await responses.events(owned.id, after, testCaller.principal);
      expect(readAll(reader)).toEqual(whole.slice(after));
      reader?.close();
    }
    expect(await responses.events(owned.id, whole.length, testCaller.principal)).toBeUndefined();
    expect(await responses.events(owned.id, 999, testCaller.principal)).toBeUndefined();
  });

  it("refuses a place beyond the last event of a running response", async () => {
    const { responses, backend } = setUp();
    backend.answer = gatedAnswer().answer;
    const owned = await responses.create(request, testCaller, "lmsp");
    await settle();
    await expect(responses.events(owned.id, 99, testCaller.principal)).rejects.toMatchObject({
      code: "invalid-request",
    });
  });

  it("shows a response to its owner and to admins only", async () => {
    const { responses } = setUp();
    const owned = await responses.create(request, caller("ann"), "lmsp");
    await owned.done;
    const bob = caller("bob").principal;
    for (const call of [
      responses.get(owned.id, bob),
      responses.cancel(owned.id, bob),
      responses.delete(owned.id, bob),
      responses.events(owned.id, 0, bob),
    ]) {
      await expect(call).rejects.toMatchObject({ code: "not-found" });
    }
    expect((await responses.list({ limit: 10 }, bob)).data).toHaveLength(0);
    expect((await responses.list({ limit: 10, owner: "ann" }, bob)).data).toHaveLength(0);
    const admin = caller("eve", { scopes: new Set(["admin"]) }).principal;
    expect((await responses.list({ limit: 10 }, admin)).data).toHaveLength(1);
    expect((await responses.get(owned.id, admin)).response.id).toBe(owned.id);
  });

  it("forgets an ended response after its retention, a stored one later", async () => {
    const { responses, clock, store, core } = setUp();
    const plain = await responses.create(request, testCaller, "lmsp");
    const stored = await responses.create({ ...request, store: true }, testCaller, "lmsp");
    await Promise.all([plain.done, stored.done]);
    await settle();
    clock.advance(66_000);
    await settle();
    await expect(responses.get(plain.id, testCaller.principal)).rejects.toMatchObject({ code: "not-found" });
    expect((await responses.get(stored.id, testCaller.principal)).response.status).toBe("completed");
    clock.advance(3_600_000);
    await settle();
    expect(store.size).toBe(0);
    expect(core.log.bytes).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it("deletes a running response after cancelling it", async () => {
    const { responses, backend } = setUp();
    backend.answer = gatedAnswer().answer;
    const owned = await responses.create(request, testCaller, "lmsp");
    const reader = owned.read();
    await settle();
    await responses.delete(owned.id, testCaller.principal);
    expect((await owned.done).status).toBe("cancelled");
    expect(readAll(reader).at(-1)?.type).toBe("response.cancelled");
    await expect(responses.get(owned.id, testCaller.principal)).rejects.toMatchObject({ code: "not-found" });
  });

  it("continues a conversation by `previousResponseId`, own and ended ones only", async () => {
    const { responses, backend } = setUp();
    backend.answer = textAnswer(["Hello"]);
    const first = await responses.create(request, caller("ann"), "openai");
    await first.done;
    const next: ResponseRequest = { ...request, previousResponseId: first.id };
    const continued = await (await responses.create(next, caller("ann"), "openai")).done;
    expect(continued.previousResponseId).toBe(first.id);
    expect(backend.requests[1]?.input).toEqual({
      kind: "items",
      items: [
        ...(request.input.kind === "items" ? request.input.items : []),
        { type: "message", role: "assistant", content: [{ type: "text", text: "Hello" }] },
        ...(request.input.kind === "items" ? request.input.items : []),
      ],
    });
    for (const [id, who] of [
      [first.id, "bob"],
      ["resp_nope", "ann"],
    ] as const) {
      await expect(
        responses.create({ ...request, previousResponseId: id }, caller(who), "openai"),
      ).rejects.toMatchObject({
        code: "not-found",
        message: `There is no response '${id}'.`,
        details: { param: "previous_response_id" },
      });
    }
  });

  it("supersedes an own earlier response", async () => {
    const { responses, backend } = setUp();
    backend.answer = gatedAnswer().answer;
    const first = await responses.create(request, testCaller, "lmsp");
    await settle();
    backend.answer = textAnswer(["new"]);
    const second = await responses.create({ ...request, supersedes: first.id }, testCaller, "lmsp");
    expect(await first.done).toMatchObject({ status: "cancelled", problem: { code: "superseded" } });
    expect((await second.done).status).toBe("completed");
  });

  it("lowers a priority to what the token allows", async () => {
    const { responses } = setUp();
    const owned = await responses.create({ ...request, priority: 8 }, caller("ann", { topPriority: 2 }), "lmsp");
    expect((await owned.done).priority).toBe(2);
  });

  it("refuses what the queue has no room for, and leaves nothing of it", async () => {
    const { responses, backend, store, core } = setUp({ parallel: 1, limits: { queued: 1 } });
    const gate = gatedAnswer();
    backend.answer = gate.answer;
    await responses.create(request, testCaller, "lmsp");
    await responses.create(request, testCaller, "lmsp");
    const bytes = core.log.bytes;
    await expect(responses.create(request, testCaller, "lmsp")).rejects.toMatchObject({
      code: "overloaded",
      details: { retryAfterMs: 1_000 },
    });
    expect(store.size).toBe(2);
    expect(core.log.bytes).toBe(bytes);
    expect(responses.active).toBe(2);
    gate.open();
  });

  it("what was refused leaves no deadline behind", async () => {
    const { responses, backend, clock } = setUp({ parallel: 1, limits: { queued: 0 } });
    backend.answer = gatedAnswer().answer;
    await responses.create(request, testCaller, "lmsp");
    const pending = clock.pending;
    const late: ResponseRequest = { ...request, deadlineMs: clock.now() + 100 };
    await expect(responses.create(late, testCaller, "lmsp")).rejects.toMatchObject({ code: "overloaded" });
    expect(clock.pending).toBe(pending);
    clock.advance(200);
  });

  it("a deadline that has passed never reaches a backend", async () => {
    const { responses, backend, clock } = setUp();
    const late: ResponseRequest = { ...request, deadlineMs: clock.now() };
    await expect(responses.create(late, testCaller, "lmsp")).rejects.toMatchObject({ code: "deadline-exceeded" });
    expect(backend.requests).toHaveLength(0);
    expect(responses.active).toBe(0);
  });

  it("supersedes only when it was accepted, and only an own one", async () => {
    const { responses, backend } = setUp({ parallel: 1, limits: { queued: 0 } });
    backend.answer = gatedAnswer().answer;
    const first = await responses.create(request, caller("ann"), "lmsp");
    const next: ResponseRequest = { ...request, supersedes: first.id };
    await expect(responses.create(next, caller("ann"), "lmsp")).rejects.toMatchObject({ code: "overloaded" });
    expect((await responses.get(first.id, caller("ann").principal)).response.status).not.toBe("cancelled");
    const admin = caller("eve", { scopes: new Set(["admin"]) });
    await expect(responses.create(next, admin, "lmsp")).rejects.toMatchObject({
      code: "not-found",
      details: { param: "supersedes" },
    });
  });

  it("asks for the capabilities that the whole conversation needs", async () => {
    const seeing = scriptedModel("seeing", { capabilities: { ...scriptedModel("m").capabilities, vision: true } });
    const backend = new ScriptedBackend("b", [scriptedModel("m"), seeing]);
    const { responses } = createTestCore({ backends: [backend] });
    const image = { type: "message", role: "user", content: [{ type: "image", url: "data:," }] } as const;
    const first = await responses.create(
      { ...request, model: "seeing", input: { kind: "items", items: [image] } },
      testCaller,
      "lmsp",
    );
    await first.done;
    const next: ResponseRequest = { ...request, previousResponseId: first.id };
    await expect(responses.create(next, testCaller, "lmsp")).rejects.toMatchObject({ code: "unsupported-capability" });
  });

  it("keeps within the byte budget of requests and outputs: ended ones go first, running ones leave no room", async () => {
    const { responses, backend, store } = setUp({ limits: { recordBytesTotal: 100_000 } });
    const large: ResponseRequest = {
      ...request,
      store: true,
      input: {
        kind: "items",
        items: [{ type: "message", role: "user", content: [{ type: "text", text: "x".repeat(15_000) }] }],
      },
    };
    for (let index = 0; index < 10; index += 1) await (await responses.create(large, testCaller, "lmsp")).done;
    await settle();
    expect(store.size).toBeLessThanOrEqual(3);
    backend.answer = gatedAnswer().answer;
    for (let index = 0; index < 3; index += 1) await responses.create(large, testCaller, "lmsp");
    await expect(responses.create(large, testCaller, "lmsp")).rejects.toMatchObject({ code: "overloaded" });
  });

  it("forgets at its end what is larger than the whole budget", async () => {
    const { responses, store, core } = setUp({ limits: { recordBytesTotal: 10 } });
    expect((await (await responses.create(request, testCaller, "lmsp")).done).status).toBe("completed");
    await settle();
    expect(store.size).toBe(0);
    expect(core.log.bytes).toBe(0);
  });

  it("a request that waited for the models is refused when the service drains meanwhile", async () => {
    let known: () => void = () => {};
    const backend = new ScriptedBackend("b", [scriptedModel("m")]);
    const ready = new Promise<void>((resolve) => {
      known = resolve;
    });
    const core = createTestCore({ backends: [Object.assign(backend, { ready })] });
    const asked = core.responses.create(request, testCaller, "lmsp");
    await core.close(0);
    known();
    await expect(asked).rejects.toMatchObject({ code: "draining" });
    expect(backend.requests).toHaveLength(0);
  });

  it("drains: takes nothing new, lets running ones end, interrupts what is left", async () => {
    const { responses, backend, clock } = setUp();
    const quick = gatedAnswer();
    backend.answer = quick.answer;
    const first = await responses.create(request, testCaller, "lmsp");
    backend.answer = gatedAnswer().answer;
    const second = await responses.create(request, testCaller, "lmsp");
    await settle();
    const drained = responses.drain(1_000);
    await expect(responses.create(request, testCaller, "lmsp")).rejects.toMatchObject({ code: "draining" });
    quick.open();
    expect((await first.done).status).toBe("completed");
    await settle();
    clock.advance(1_000);
    await drained;
    expect((await second.done).problem?.code).toBe("interrupted");
  });

  it.each<[string, Partial<ResponseRequest>, string, string | undefined]>([
    ["unknown model", { model: "nope" }, "model-not-found", "model"],
    ["no input", { input: { kind: "items", items: [] } }, "invalid-request", "input"],
    ["temperature", { sampling: { temperature: 2.1 } }, "invalid-request", "sampling.temperature"],
    ["temperature NaN", { sampling: { temperature: Number.NaN } }, "invalid-request", "sampling.temperature"],
    ["top_k in parts", { sampling: { topK: 1.5 } }, "invalid-request", "sampling.top_k"],
    ["empty stop", { sampling: { stop: [""] } }, "invalid-request", "sampling.stop"],
    ["bias on no token", { sampling: { logitBias: { x: 1 } } }, "invalid-request", "sampling.logit_bias"],
    ["no tokens", { output: { format: { type: "text" }, maxTokens: 0 } }, "invalid-request", "output.max_tokens"],
    [
      "an image on the web",
      {
        input: {
          kind: "items",
          items: [{ type: "message", role: "user", content: [{ type: "image", url: "http://169.254.169.254/" }] }],
        },
      },
      "invalid-request",
      "input[0].content[0]",
    ],
    ["nine candidates", { candidates: 9 }, "invalid-request", "candidates"],
    ["priority", { priority: 9 }, "invalid-request", "priority"],
    ["a deadline beyond every date", { deadlineMs: 9e15 }, "invalid-request", "deadline"],
    ["a model kept for a million years", { keepAliveMs: 3e16 }, "invalid-request", "keep_alive"],
    ["required without tools", { toolChoice: "required" }, "invalid-request", "tools"],
    ["named tool unknown", { tools: [{ name: "f" }], toolChoice: { name: "g" } }, "invalid-request", "tool_choice"],
    ["tool name", { tools: [{ name: "a b" }] }, "invalid-request", "tools[0].name"],
    ["tool twice", { tools: [{ name: "f" }, { name: "f" }] }, "invalid-request", "tools[1].name"],
    [
      "an image for a model without eyes",
      {
        input: {
          kind: "items",
          items: [{ type: "message", role: "user", content: [{ type: "image", url: "data:," }] }],
        },
      },
      "unsupported-capability",
      "input",
    ],
  ])("refuses by name: %s", async (_name, changes, code, param) => {
    const { responses, backend } = setUp();
    await expect(responses.create({ ...request, ...changes }, testCaller, "lmsp")).rejects.toMatchObject({
      code,
      details: { param },
    });
    expect(backend.requests).toHaveLength(0);
    expect(responses.active).toBe(0);
  });

  it("refuses a model that the token may not use", async () => {
    const { responses } = setUp();
    await expect(responses.create(request, caller("ann", { models: ["other*"] }), "lmsp")).rejects.toMatchObject({
      code: "forbidden",
    });
    await expect(responses.create(request, caller("ann", { models: ["m*"] }), "lmsp")).resolves.toBeDefined();
  });
});
