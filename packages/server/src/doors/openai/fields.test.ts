import { describe, expect, it } from "vitest";
import type { ZodObject } from "zod";
import { chatFields, chatTable } from "../shared/openai/chat/fields.ts";
import { chatSchema } from "../shared/openai/chat/schema.ts";
import { completionFields, completionTable } from "../shared/openai/completions/fields.ts";
import { completionSchema } from "../shared/openai/completions/schema.ts";
import { embeddingFields, embeddingTable } from "../shared/openai/embeddings/fields.ts";
import { embeddingSchema } from "../shared/openai/embeddings/schema.ts";
import type { FieldTable } from "../shared/openai/fields.ts";
import { responsesFields, responsesTable } from "../shared/openai/responses/fields.ts";
import { responsesSchema } from "../shared/openai/responses/schema.ts";
import { hostedTools } from "../shared/openai/responses/tools.ts";
import { fieldsOf, toolTypes } from "./testing/openai-types.ts";
import { errorOf, setUp } from "./testing/set-up.ts";

interface Api {
  readonly path: string;
  readonly pinned: readonly [file: string, name: string];
  /** Fields of the pinned types. */
  readonly own: FieldTable;
  /** Those and the extras. */
  readonly table: FieldTable;
  readonly schema: ZodObject;
  /** The least that it takes. */
  readonly body: Record<string, unknown>;
}

const messages = [{ role: "user", content: "Hi" }];

const apis: Record<string, Api> = {
  chat: {
    path: "/v1/chat/completions",
    pinned: ["chat/completions/completions.d.ts", "ChatCompletionCreateParamsBase"],
    own: chatFields,
    table: chatTable,
    schema: chatSchema,
    body: { model: "m-tiny", messages },
  },
  responses: {
    path: "/v1/responses",
    pinned: ["responses/responses.d.ts", "ResponseCreateParamsBase"],
    own: responsesFields,
    table: responsesTable,
    schema: responsesSchema,
    body: { model: "m-tiny", input: "Hi" },
  },
  completions: {
    path: "/v1/completions",
    pinned: ["completions.d.ts", "CompletionCreateParamsBase"],
    own: completionFields,
    table: completionTable,
    schema: completionSchema,
    body: { model: "m-tiny", prompt: "Hi" },
  },
  embeddings: {
    path: "/v1/embeddings",
    pinned: ["embeddings.d.ts", "EmbeddingCreateParams"],
    own: embeddingFields,
    table: embeddingTable,
    schema: embeddingSchema,
    body: { model: "e-tiny", input: "Hi" },
  },
};

const parameters = { type: "object" };
const chatTool = (name: string) => ({ type: "function", function: { name, parameters } });
const tool = (name: string) => ({ type: "function", name, parameters });

/** Two values of each honoured field; whatever else the first needs stands beside them. */
const samples: Record<string, readonly [first: unknown, second: unknown, beside?: Record<string, unknown>]> = {
  messages: [messages, [{ role: "user", content: "Bye" }]],
  input: ["Hi", "Bye"],
  prompt: ["Hi", "Bye"],
  suffix: ["", "."],
  instructions: ["a", "b"],
  frequency_penalty: [0, 1],
  presence_penalty: [0, 1],
  temperature: [0, 1],
  top_p: [0.5, 1],
  top_k: [1, 2],
  min_p: [0, 0.1],
  typical_p: [0.5, 1],
  repeat_penalty: [1, 1.1],
  repetition_penalty: [1, 1.1],
  repeat_last_n: [0, 64],
  seed: [1, 2],
  stop: ["a", ["a", "b"]],
  logit_bias: [{ 1: 5 }, { 1: -5 }],
  max_tokens: [1, 2],
  max_completion_tokens: [1, 2],
  max_output_tokens: [1, 2],
  metadata: [{ a: "1" }, { a: "2" }],
  parallel_tool_calls: [true, false],
  reasoning_effort: ["low", "xhigh"],
  reasoning: [{ effort: "low" }, { effort: "high" }],
  response_format: [{ type: "text" }, { type: "json_object" }],
  text: [{ format: { type: "text" } }, { format: { type: "json_object" } }],
  truncation: ["auto", "disabled"],
  store: [true, false],
  background: [true, false],
  include: [[], ["message.output_text.logprobs"]],
  keep_alive: [60, "5m"],
  dimensions: [2, 3],
};

function sampleOf(api: string, field: string) {
  const isChat = api === "chat";
  switch (field) {
    case "tools":
      return isChat ? ([[chatTool("a")], [chatTool("b")]] as const) : ([[tool("a")], [tool("b")]] as const);
    case "tool_choice":
      return ["none", "required", { tools: isChat ? [chatTool("a")] : [tool("a")] }] as const;
    case "logprobs":
      return isChat ? ([false, true] as const) : ([1, 2] as const);
    case "top_logprobs":
      return [1, 2, isChat ? { logprobs: true } : {}] as const;
    case "model":
      return api === "embeddings" ? (["e-tiny", "e-small"] as const) : (["m-tiny", "t-tiny"] as const);
    default:
      return samples[field];
  }
}

/** Fields that change the answer, not the core's request; each has its own test. */
const elsewhere = new Set(["stream", "stream_options", "encoding_format", "previous_response_id", "n"]);

describe.each(Object.entries(apis))("fields of %s", (api, { path, pinned, own, table, schema, body }) => {
  it("are those of the pinned client's types, both ways", () => {
    expect(Object.keys(own).sort()).toEqual(fieldsOf(...pinned).sort());
  });

  it("are read where they are honoured, and only there", () => {
    const honoured = Object.keys(table).filter((name) => table[name]?.effect === "honoured");
    expect(Object.keys(schema.shape).sort()).toEqual(honoured.sort());
  });

  const rows = Object.entries(table);

  it.each(rows.filter(([, { effect }]) => effect === "without effect"))(
    "%s is without effect and said so",
    async (name) => {
      const { post, backend } = setUp();
      const plain = await post(path, body);
      const answer = await post(path, { ...body, [name]: "x" });
      expect(plain.headers["x-lmsp-without-effect"]).toBeUndefined();
      expect(answer.status, answer.text).toBe(200);
      expect(answer.headers["x-lmsp-without-effect"]).toBe(name);
      expect(backend.requests[1]).toEqual(backend.requests[0]);
      expect(backend.embeddingRequests[1]).toEqual(backend.embeddingRequests[0]);
    },
  );

  it.each(rows.filter(([, { effect }]) => effect === "refused"))("%s is refused by name", async (name) => {
    const { post, backend } = setUp();
    const answer = await post(path, { ...body, [name]: { any: "thing" } });
    expect(answer.status).toBe(400);
    expect(errorOf(answer)).toMatchObject({ type: "invalid_request_error", param: name, code: "unsupported_value" });
    expect(errorOf(answer).message).toContain(name);
    expect(backend.requests).toHaveLength(0);
  });

  it.each(rows.filter(([name, { effect }]) => effect === "honoured" && !elsewhere.has(name)))(
    "%s: two values make two requests",
    async (name) => {
      const [first, second, beside] = sampleOf(api, name) ?? [];
      const { post, backend } = setUp();
      for (const value of [first, second]) {
        const answer = await post(path, { ...body, ...beside, [name]: value });
        expect(answer.status, answer.text).toBe(200);
      }
      const made = [...backend.requests, ...backend.embeddingRequests];
      expect(made).toHaveLength(2);
      expect(made[0]).not.toEqual(made[1]);
    },
  );

  it.each(rows)("%s: null is the same as absent", async (name) => {
    if (Object.hasOwn(body, name)) return;
    const { post, backend } = setUp();
    await post(path, body);
    const answer = await post(path, { ...body, [name]: null });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers["x-lmsp-without-effect"]).toBeUndefined();
    expect(backend.requests[1]).toEqual(backend.requests[0]);
    expect(backend.embeddingRequests[1]).toEqual(backend.embeddingRequests[0]);
  });

  it("names fields that nobody knows, as no header can be broken", async () => {
    const { post } = setUp();
    const answer = await post(path, { ...body, client_metadata: {}, "x\r\nset-cookie": 1, nül: true, absent: null });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.headers["x-lmsp-without-effect"]).toBe("client_metadata, x__set-cookie, n_l");
  });
});

it("knows every tool of the pinned types", () => {
  const types = toolTypes();
  expect(types).toContain("web_search");
  expect([...hostedTools, "function"].sort()).toEqual([...new Set(types)].sort());
});
