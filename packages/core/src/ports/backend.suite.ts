import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BackendEvent } from "../events/backend-events.ts";
import { CoreError } from "../problems/core-error.ts";
import { type EmbeddingRequest, type ResponseRequest, requestDefaults } from "../request/request.ts";
import type { Backend } from "./backend.ts";

export interface BackendUnderTest {
  /** Such as `embedded`. */
  readonly name: string;
  create(): Promise<Backend>;
  /** Name of a model that chats. */
  readonly chatModel: string;
  /** Name of a model that embeds; absent: the backend has none. */
  readonly embeddingModel?: string;
  /** A request that runs until it is aborted. */
  readonly endless: Partial<ResponseRequest>;
}

/** What every backend does alike (`Backend`). */
export function testBackend(under: BackendUnderTest): void {
  describe(`backend: ${under.name}`, { timeout: 120_000 }, () => {
    let backend: Backend;
    beforeAll(async () => {
      backend = await under.create();
      await backend.ready;
    }, 120_000);
    afterAll(() => backend?.close());

    const request = (changes: Partial<ResponseRequest> = {}): ResponseRequest => ({
      ...requestDefaults,
      model: under.chatModel,
      input: {
        kind: "items",
        items: [{ type: "message", role: "user", content: [{ type: "text", text: "Say hello." }] }],
      },
      output: { format: { type: "text" }, maxTokens: 8 },
      ...changes,
    });
    const never = new AbortController().signal;

    async function collect(asked: ResponseRequest, signal = never): Promise<BackendEvent[]> {
      const events: BackendEvent[] = [];
      await backend.respond(asked, (batch) => events.push(...batch), signal);
      return events;
    }

    it("tells its models", () => {
      const models = backend.models();
      expect(models.find(({ name }) => name === under.chatModel)).toMatchObject({ capabilities: { chat: true } });
      expect(new Set(models.map(({ name }) => name)).size).toBe(models.length);
    });

    it("pushes accepted once before any output, one finish for each candidate, and usage before it resolves", async () => {
      const events = (await collect(request())).filter(({ type }) => type !== "progress");
      const types = events.map(({ type }) => type);
      expect(types[0]).toBe("accepted");
      expect(types.filter((type) => type === "accepted")).toHaveLength(1);
      expect(types.filter((type) => type === "finish")).toHaveLength(1);
      expect(types.filter((type) => type === "usage")).toHaveLength(1);
      expect(types.lastIndexOf("text")).toBeLessThan(types.indexOf("finish"));
      const usage = events.find((event) => event.type === "usage");
      expect(usage?.usage.inputTokens).toBeGreaterThan(0);
    });

    it("refuses a model that it does not have", async () => {
      await expect(collect(request({ model: "no-such-model" }))).rejects.toMatchObject({ code: "model-not-found" });
      await expect(backend.load("no-such-model", {}, never)).rejects.toMatchObject({ code: "model-not-found" });
    });

    it("rejects with the signal's reason when it was aborted before it began", async () => {
      const reason = new CoreError("cancelled", "before");
      await expect(collect(request(), AbortSignal.abort(reason))).rejects.toBe(reason);
    });

    it("rejects with the signal's reason when it is aborted while it runs, and answers again", async () => {
      const abort = new AbortController();
      const reason = new CoreError("cancelled", "while it runs");
      let pushed = 0;
      const running = backend.respond(
        request(under.endless),
        (batch) => {
          pushed += batch.filter(({ type }) => type === "text").length;
          if (pushed > 0) abort.abort(reason);
        },
        abort.signal,
      );
      await expect(running).rejects.toBe(reason);
      expect(pushed).toBeGreaterThan(0);
      expect((await collect(request())).at(-1)).toMatchObject({ type: "usage" });
    });

    it("runs more at once than it has slots", async () => {
      const runs = await Promise.all(Array.from({ length: 6 }, () => collect(request())));
      for (const events of runs) expect(events.some(({ type }) => type === "finish")).toBe(true);
    });

    it.skipIf(under.embeddingModel === undefined)(
      "makes vectors of length 1, one for each input, in order",
      async () => {
        const embedding: EmbeddingRequest = {
          model: under.embeddingModel ?? "",
          inputs: ["a cat", "a railway", "a cat"],
          truncate: false,
          priority: 0,
          runtimeOptions: {},
        };
        const { vectors, inputTokens } = await backend.embed(embedding, never);
        expect(vectors).toHaveLength(3);
        expect(inputTokens).toBeGreaterThan(0);
        for (const vector of vectors) expect(vector.reduce((sum, value) => sum + value * value, 0)).toBeCloseTo(1, 3);
        expect(vectors[0]).toEqual(vectors[2]);
        await expect(backend.embed(embedding, AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
      },
    );

    it("tells listeners of changes until they leave", async () => {
      let told = 0;
      const leave = backend.onChange(() => {
        told += 1;
      });
      await backend.load(under.chatModel, {}, never);
      await backend.unload(under.chatModel);
      await backend.load(under.chatModel, {}, never);
      const before = told;
      leave();
      await backend.unload(under.chatModel);
      expect(told).toBe(before);
      expect((await collect(request())).some(({ type }) => type === "finish")).toBe(true);
    });
  });
}
