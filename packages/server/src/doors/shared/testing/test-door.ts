import {
  type BackendEvent,
  type Core,
  CoreError,
  type FunctionTool,
  type ProblemCode,
  type ResponseRequest,
  type ToolChoice,
} from "@plenum/core";
import { createTestCore, type ScriptedAnswer, ScriptedBackend, scriptedModel, textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import type { Door } from "../door.ts";
import { beginCall, callDoor, type TestRequest } from "./call-door.ts";
import type { MemoryResponder } from "./memory-responder.ts";

/** A chat in words that every API has, each field explicit. */
export interface NeutralChat {
  readonly model: string;
  readonly system: string;
  readonly user: string;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP: number;
  readonly seed: number;
  readonly stop: readonly string[];
  readonly tools: readonly FunctionTool[];
  readonly toolChoice: ToolChoice;
  readonly schema?: Readonly<Record<string, unknown>>;
}

export interface NeutralAnswer {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: unknown }[];
  /** The API's own word. */
  readonly finishReason: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** How a door's API says the same things. */
export interface DoorUnderTest {
  /** Such as `openai chat`. */
  readonly name: string;
  readonly door: Door;
  chat(chat: NeutralChat, stream: boolean): TestRequest;
  /** Reads an answer, streamed or not. */
  read(answer: MemoryResponder, stream: boolean): NeutralAnswer;
  /** The API's words for an answer that ended by itself, by length, with calls. */
  readonly finishReasons: { readonly stop: string; readonly length: string; readonly toolCalls: string };
  /** Reads an error body: a sentence, and the field where the API has a place for it. */
  readError(answer: MemoryResponder): { readonly message: string; readonly param?: string | null };
  /** Status of each problem on this door. */
  statusOf(code: ProblemCode): number;
  /** Fields of the neutral chat for which the API has no words: they keep the API's default. */
  readonly without: readonly (keyof NeutralChat)[];
  /** Ends of a streamed answer that failed after output: whether the text tells it. */
  readStreamError(answer: MemoryResponder): string | undefined;
}

const weather: FunctionTool = {
  name: "get_weather",
  description: "Weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

const chat: NeutralChat = {
  model: "m-tiny",
  system: "Be brief.",
  user: "Hi",
  maxTokens: 64,
  temperature: 0.5,
  topP: 0.9,
  seed: 7,
  stop: ["END"],
  tools: [],
  toolChoice: "auto",
};

/** The core request that the neutral chat stands for; the reference for every door. */
export function expectedRequest(neutral: NeutralChat, under: DoorUnderTest): Partial<ResponseRequest> {
  const has = (field: keyof NeutralChat): boolean => !under.without.includes(field);
  return {
    model: neutral.model,
    input: {
      kind: "items",
      items: [
        { type: "message", role: "system", content: [{ type: "text", text: neutral.system }] },
        { type: "message", role: "user", content: [{ type: "text", text: neutral.user }] },
      ],
    },
    tools: neutral.tools,
    toolChoice: has("toolChoice") ? neutral.toolChoice : "auto",
    output: {
      maxTokens: neutral.maxTokens,
      format:
        neutral.schema === undefined
          ? { type: "text" }
          : { type: "json_schema", name: "answer", schema: neutral.schema, strict: true },
    },
    sampling: {
      temperature: neutral.temperature,
      topP: neutral.topP,
      ...(has("seed") ? { seed: neutral.seed } : {}),
      ...(has("stop") ? { stop: neutral.stop } : {}),
    },
  };
}

const callAnswer: ScriptedAnswer = function* () {
  yield [{ type: "accepted", inputTokens: 5 }];
  yield [{ type: "function_call", candidate: 0, call: 0, name: "get_weather" }];
  for (const delta of ['{"city"', ':"Par', 'is"}']) {
    yield [{ type: "function_call_arguments", candidate: 0, call: 0, delta }];
  }
  yield [
    { type: "finish", candidate: 0, finishReason: "tool_calls", rawFinishReason: "stop" },
    { type: "usage", usage: { inputTokens: 5, outputTokens: 9, cachedInputTokens: 0, reasoningTokens: 0 } },
  ];
};

function failing(code: ProblemCode, before: readonly BackendEvent[]): ScriptedAnswer {
  return async function* () {
    if (before.length > 0) yield before;
    // Lets what came before leave on its own.
    await new Promise((resolve) => setTimeout(resolve, 10));
    throw new CoreError(code, "A sentence that says what to do.", {});
  };
}

/** The shared suite: what every door has to do alike, without a port. */
export function testDoor(under: DoorUnderTest): void {
  const setUp = (): { readonly core: Core; readonly backend: ScriptedBackend } => {
    const backend = new ScriptedBackend("scripted", [
      scriptedModel("m-tiny", { aliases: ["tiny"] }),
      scriptedModel("e-tiny", { capabilities: { ...scriptedModel("x").capabilities, chat: false, embeddings: true } }),
    ]);
    return { backend, core: createTestCore({ backends: [backend] }) };
  };

  describe(`door: ${under.name}`, () => {
    for (const stream of [false, true]) {
      const mode = stream ? "streamed" : "whole";

      it(`${mode}: explicit fields give the same core request as through every other door`, async () => {
        const { core, backend } = setUp();
        const answer = await callDoor(under.door, core, under.chat(chat, stream));
        expect(answer.status, answer.text).toBe(200);
        expect(backend.requests).toHaveLength(1);
        expect(backend.requests[0]).toMatchObject(expectedRequest(chat, under));
      });

      it(`${mode}: text and usage arrive whole`, async () => {
        const { core, backend } = setUp();
        backend.answer = textAnswer(["Hé", "l", "lo \n🦀", ' "x"'], 5);
        const answer = await callDoor(under.door, core, under.chat(chat, stream));
        expect(under.read(answer, stream)).toEqual({
          text: "Hél" + 'lo \n🦀 "x"',
          calls: [],
          finishReason: under.finishReasons.stop,
          inputTokens: 5,
          outputTokens: 4,
        });
        expect(answer.hasEnded).toBe(true);
      });

      it(`${mode}: a tool call arrives whole`, async () => {
        const { core, backend } = setUp();
        backend.answer = callAnswer;
        const neutral = { ...chat, tools: [weather], toolChoice: "required" as const };
        const answer = await callDoor(under.door, core, under.chat(neutral, stream));
        expect(backend.requests[0]).toMatchObject(expectedRequest(neutral, under));
        expect(under.read(answer, stream)).toEqual({
          text: "",
          calls: [{ name: "get_weather", arguments: { city: "Paris" } }],
          finishReason: under.finishReasons.toolCalls,
          inputTokens: 5,
          outputTokens: 9,
        });
      });

      it(`${mode}: a schema reaches the core as it is`, async () => {
        const { core, backend } = setUp();
        const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
        await callDoor(under.door, core, under.chat({ ...chat, schema }, stream));
        expect(backend.requests[0]?.output.format).toMatchObject({ type: "json_schema", schema });
      });

      it(`${mode}: an answer cut by length says so`, async () => {
        const { core, backend } = setUp();
        backend.answer = function* () {
          yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "cut" }];
          yield [{ type: "finish", candidate: 0, finishReason: "length", rawFinishReason: "length" }];
        };
        const answer = await callDoor(under.door, core, under.chat(chat, stream));
        expect(under.read(answer, stream).finishReason).toBe(under.finishReasons.length);
      });

      it.each([
        "context-length-exceeded",
        "backend-error",
        "backend-unavailable",
        "overloaded",
        "model-loading",
        "invalid-output",
        "insufficient-memory",
        "deadline-exceeded",
        "internal",
      ] as const)(`${mode}: %s before the first output has its own status`, async (code) => {
        const { core, backend } = setUp();
        backend.answer = failing(code, []);
        const answer = await callDoor(under.door, core, under.chat(chat, stream));
        expect(answer.status).toBe(under.statusOf(code));
        expect(answer.headers["content-type"]).toMatch(/json/);
        expect(under.readError(answer).message.length).toBeGreaterThan(5);
        expect(answer.hasEnded).toBe(true);
      });

      it(`${mode}: a client that goes away ends the work`, async () => {
        const { core, backend } = setUp();
        backend.answer = async function* (_request, signal) {
          yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "x" }];
          await new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          });
        };
        const { responder, done } = beginCall(under.door, core, {
          ...under.chat(chat, stream),
          headers: { "x-lmsp-on-disconnect": "cancel" },
        });
        await expect.poll(() => backend.running).toBe(1);
        responder.close();
        await done;
        await expect.poll(() => backend.running).toBe(0);
        expect(backend.aborted).toBe(1);
        await expect.poll(() => core.responses.active).toBe(0);
      });
    }

    it("streamed: a failure after output is told in the stream", async () => {
      const { core, backend } = setUp();
      backend.answer = failing("backend-error", [{ type: "accepted" }, { type: "text", candidate: 0, delta: "some" }]);
      const answer = await callDoor(under.door, core, under.chat(chat, true));
      expect(answer.status).toBe(200);
      expect(under.readStreamError(answer)).toContain("A sentence that says what to do.");
      expect(answer.hasEnded).toBe(true);
    });

    it.each([
      ["an unknown model", { ...chat, model: "nope" }, "model-not-found"],
      ["chat on an embedding model", { ...chat, model: "e-tiny" }, "unsupported-capability"],
      ["a temperature out of range", { ...chat, temperature: 9 }, "invalid-request"],
      ["a limit of no tokens", { ...chat, maxTokens: -5 }, "invalid-request"],
    ] as const)("%s is refused by name", async (_name, neutral, code) => {
      const { core, backend } = setUp();
      const answer = await callDoor(under.door, core, under.chat(neutral, false));
      expect(answer.status, answer.text).toBe(under.statusOf(code));
      expect(under.readError(answer).message.length).toBeGreaterThan(5);
      expect(backend.requests).toHaveLength(0);
    });

    it("an alias reaches its model", async () => {
      const { core, backend } = setUp();
      const answer = await callDoor(under.door, core, under.chat({ ...chat, model: "tiny" }, false));
      expect(answer.status, answer.text).toBe(200);
      expect(backend.requests[0]?.model).toBe("m-tiny");
    });

    it("a body that is not JSON is refused", async () => {
      const { core } = setUp();
      const answer = await callDoor(under.door, core, { ...under.chat(chat, false), body: "{" });
      expect(answer.status).toBe(under.statusOf("invalid-json"));
      expect(under.readError(answer).message.length).toBeGreaterThan(5);
    });

    it("names the response, which LMSP shows while it is kept", async () => {
      const { core } = setUp();
      const answer = await callDoor(under.door, core, under.chat(chat, false));
      const id = answer.headers["x-lmsp-response-id"] ?? "";
      expect(id).toMatch(/^resp_[0-9a-v]{24}$/);
      expect((await core.responses.get(id, localOwner)).response).toMatchObject({
        door: under.door.kind,
        status: "completed",
      });
    });
  });
}

const localOwner = { id: "local", scopes: new Set(["read"] as const) };
