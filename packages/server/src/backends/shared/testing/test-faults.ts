/** The suite of faults that every HTTP backend runs. */
import {
  type Backend,
  type BackendEvent,
  type BackendRequest,
  CoreError,
  type EmbeddingRequest,
  requestDefaults,
} from "@plenum/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Fault, faultsOf, prompt, upstreamKey } from "./faults.ts";
import { type HostileUpstream, startHostileUpstream } from "./hostile-upstream.ts";
import type { Wire } from "./wires.ts";

export interface FaultsOptions {
  readonly api: Wire["api"];
  /** Makes the backend with `upstreamKey`, with these limits and without waiting for models to load. */
  readonly create: (options: {
    readonly id: string;
    readonly baseUrl: string;
    readonly headTimeoutMs: number;
    readonly silenceTimeoutMs: number;
  }) => Backend;
}

const id = "hostile-one";
const limits = { headTimeoutMs: 300, silenceTimeoutMs: 300 };
const never = new AbortController().signal;

const chatRequest = (model: string): BackendRequest => ({
  ...requestDefaults,
  model,
  input: { kind: "items", items: [{ type: "message", role: "user", content: [{ type: "text", text: prompt }] }] },
});
const embeddingRequest = (model: string): EmbeddingRequest => ({
  model,
  inputs: [prompt],
  truncate: false,
  priority: 0,
  runtimeOptions: {},
});

export function testFaults({ api, create }: FaultsOptions): void {
  let upstream: HostileUpstream;
  let backend: Backend;
  beforeAll(async () => {
    upstream = await startHostileUpstream();
    backend = create({ id, baseUrl: upstream.url, ...limits });
    await backend.ready;
  });
  afterAll(async () => {
    await backend?.close();
    await upstream?.close();
  });

  describe("faults in a chat", () => {
    it.each(faultsOf(api, "streams").map((fault) => [fault.name, fault] as const))("%s", async (_name, fault) => {
      const { text, error } = await chat(fault);
      check(fault, error);
      if (fault.text !== undefined) expect(text).toBe(fault.text);
    });
  });

  describe("faults in embeddings", () => {
    it.each(faultsOf(api, "embeddings").map((fault) => [fault.name, fault] as const))("%s", async (_name, fault) => {
      const error = await backend.embed(embeddingRequest(fault.model), never).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      check(fault, error);
    });
  });

  it("a connection that was closed while it was idle is not noticed", async () => {
    const fresh = create({ id, baseUrl: upstream.url, ...limits });
    await fresh.ready;
    for (let round = 0; round < 4; round += 1) {
      await fresh.respond(chatRequest("closed-when-it-is-used-again"), () => {}, never);
    }
    await fresh.close();
  });

  describe("nobody listens", () => {
    it("says so, and names the runtime", async () => {
      const gone = await startHostileUpstream();
      const left = create({ id, baseUrl: gone.url, ...limits });
      await left.ready;
      await gone.close();
      for (const call of [
        left.respond(chatRequest("empty"), () => {}, never),
        left.embed(embeddingRequest("empty"), never),
      ]) {
        await expect(call).rejects.toMatchObject({ code: "backend-unavailable", detail: expect.stringContaining(id) });
      }
      await left.close();
    });
  });

  async function chat({ model }: Pick<Fault, "model">): Promise<{ readonly text: string; readonly error: unknown }> {
    const events: BackendEvent[] = [];
    const error = await backend
      .respond(chatRequest(model), (batch) => events.push(...batch), never)
      .then(
        () => undefined,
        (reason: unknown) => reason,
      );
    const text = events.map((event) => (event.type === "text" ? event.delta : "")).join("");
    return { text, error };
  }
}

function check({ code, detail, retryAfterMs }: Fault, error: unknown): void {
  if (code === "completed") {
    expect(error).toBeUndefined();
    return;
  }
  expect(error).toBeInstanceOf(CoreError);
  if (!(error instanceof CoreError)) return;
  expect(error).toMatchObject({ code, detail: expect.stringMatching(detail ?? /./) });
  if (retryAfterMs !== undefined) expect(error.details).toMatchObject({ retryAfterMs });
  expect(error.detail).toContain(id);
  expect(error.detail).toMatch(/[.!?…]$/);
  expect(error.detail).not.toMatch(new RegExp(`${upstreamKey}|10\\.1\\.2\\.3|UND_ERR|HPE_`));
  expect(`${error.logDetail} ${String(error.cause)}`).not.toMatch(new RegExp(`${upstreamKey}|${prompt}`));
}
