import { createHash } from "node:crypto";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  chatModel,
  embeddingModel,
  embeddingModelFile,
  type Json,
  type RunningService,
  skipReason,
  starterModelFile,
  startService,
} from "./service.ts";

/** What may be wrong, said to every door; each answers in its own format with the field and what to do. */
interface Case {
  readonly name: string;
  readonly lmsp?: Ask;
  readonly openai?: Ask;
  readonly ollama?: Ask;
}

interface Ask {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Changes to a good body, or a text sent as it is. */
  readonly body?: Readonly<Record<string, unknown>> | string;
  readonly status: number;
  /** Text that the answer must hold: the field, or what to do. */
  readonly says: string | RegExp;
}

const messages = [{ role: "user", content: "Hi" }];
const paths = { lmsp: "/lmsp/v1/responses", openai: "/v1/chat/completions", ollama: "/api/chat" } as const;
const goodBodies: Record<Door, Record<string, unknown>> = {
  lmsp: { model: "smollm2", input: "Hi", output: { max_tokens: 4 } },
  openai: { model: "smollm2", messages, max_tokens: 4 },
  ollama: { model: "smollm2", messages, options: { num_predict: 4 }, stream: false },
};
type Door = keyof typeof paths;
const doors = Object.keys(paths) as Door[];

const longText = "word ".repeat(20_000);
const tool = { name: "f", parameters: { type: "object", properties: {} } };
const openaiTool = { type: "function", function: tool };
const hopeless = { type: "object", properties: { n: { type: "number", multipleOf: 0.3 } }, required: ["n"] };
const image = "data:image/png;base64,iVBORw0KGgo=";
const withImage = [
  {
    role: "user",
    content: [
      { type: "text", text: "What?" },
      { type: "image_url", image_url: { url: image } },
    ],
  },
];

const cases: readonly Case[] = [
  {
    name: "invalid JSON",
    lmsp: { body: '{"model":', status: 400, says: "JSON" },
    openai: { body: '{"model":', status: 400, says: "JSON" },
    ollama: { body: '{"model":', status: 400, says: /JSON|unexpected/i },
  },
  {
    name: "an empty body",
    lmsp: { body: "", status: 400, says: "empty" },
    openai: { body: "", status: 400, says: "empty" },
    ollama: { body: "", status: 400, says: "body" },
  },
  {
    name: "a wrong type",
    lmsp: { body: { sampling: { temperature: "hot" } }, status: 400, says: "temperature" },
    openai: { body: { temperature: "hot" }, status: 400, says: "temperature" },
    ollama: { body: { options: { temperature: "hot" } }, status: 500, says: "temperature" },
  },
  {
    name: "a number out of range",
    lmsp: { body: { sampling: { top_p: 2 } }, status: 400, says: "top_p" },
    openai: { body: { top_p: 2 }, status: 400, says: "top_p" },
    ollama: { body: { options: { top_p: 2 } }, status: 400, says: "top_p" },
  },
  {
    name: "no model",
    lmsp: { body: { model: undefined }, status: 400, says: "model" },
    openai: { body: { model: undefined }, status: 400, says: "model" },
    ollama: { body: { model: undefined }, status: 400, says: "model is required" },
  },
  {
    name: "no messages",
    lmsp: { body: { input: undefined }, status: 400, says: "input" },
    openai: { body: { messages: undefined }, status: 400, says: "messages" },
  },
  {
    name: "messages of a wrong type",
    lmsp: { body: { input: 5 }, status: 400, says: "input" },
    openai: { body: { messages: "Hi" }, status: 400, says: "messages" },
    ollama: { body: { messages: "Hi" }, status: 400, says: "messages" },
  },
  {
    name: "an unknown model",
    lmsp: { body: { model: "nope" }, status: 404, says: chatModel },
    openai: { body: { model: "nope" }, status: 404, says: "model_not_found" },
    ollama: { body: { model: "nope" }, status: 404, says: "model 'nope' not found" },
  },
  {
    name: "too large a body",
    lmsp: { body: { input: "x".repeat(300_000) }, status: 413, says: "200000" },
    openai: { body: { user: "x".repeat(300_000) }, status: 413, says: "200000" },
    ollama: { body: { x: "x".repeat(300_000) }, status: 413, says: "200000" },
  },
  {
    name: "too long a context",
    lmsp: {
      body: { input: longText },
      status: 400,
      says: /"limit":8192.*"requested":\d{5}|"requested":\d{5}.*"limit":8192/,
    },
    openai: {
      body: { messages: [{ role: "user", content: longText }], stream: true },
      status: 400,
      says: "context_length_exceeded",
    },
    ollama: { body: { messages: [{ role: "user", content: longText }] }, status: 400, says: "8192" },
  },
  {
    name: "an unknown path",
    lmsp: { path: "/lmsp/v1/nope", status: 404, says: "unsupported-operation" },
    openai: { path: "/v1/nope", status: 404, says: "unknown_url" },
    ollama: { path: "/api/nope", status: 404, says: "404 page not found" },
  },
  {
    name: "a wrong method",
    lmsp: { method: "DELETE", status: 405, says: "method-not-allowed" },
    openai: { method: "DELETE", status: 405, says: "POST" },
    ollama: { method: "DELETE", status: 405, says: "405 method not allowed" },
  },
  {
    name: "chat on an embedding model",
    lmsp: { body: { model: embeddingModel }, status: 422, says: chatModel },
    openai: { body: { model: embeddingModel }, status: 400, says: chatModel },
    ollama: { body: { model: embeddingModel }, status: 400, says: "does not support chat" },
  },
  {
    name: "embeddings on a chat model",
    openai: {
      path: "/v1/embeddings",
      body: { input: "x", messages: undefined, max_tokens: undefined },
      status: 400,
      says: embeddingModel,
    },
    ollama: { path: "/api/embed", body: { input: "x", messages: undefined }, status: 400, says: /embed/ },
  },
  {
    name: "an image for a text model",
    lmsp: {
      body: { input: [{ role: "user", content: [{ type: "input_image", image_url: image }] }] },
      status: 422,
      says: "vision",
    },
    openai: { body: { messages: withImage }, status: 400, says: /image/ },
    ollama: {
      body: { messages: [{ role: "user", content: "What?", images: ["iVBORw0KGgo="] }] },
      status: 400,
      says: /image/,
    },
  },
  {
    name: "a tool choice that names no tool",
    lmsp: { body: { tools: [tool], tool_choice: { name: "g" } }, status: 400, says: "'g'" },
    openai: {
      body: { tools: [openaiTool], tool_choice: { type: "function", function: { name: "g" } } },
      status: 400,
      says: '"param":"tool_choice"',
    },
    ollama: {
      body: { tools: [openaiTool], tool_choice: { type: "function", function: { name: "g" } } },
      status: 400,
      says: "'g'",
    },
  },
  {
    name: "a schema that the engine can't hold",
    lmsp: { body: { output: { format: { type: "json_schema", schema: hopeless } } }, status: 400, says: "multipleOf" },
    openai: {
      body: { response_format: { type: "json_schema", json_schema: { name: "x", schema: hopeless } } },
      status: 400,
      says: "multipleOf",
    },
    ollama: { body: { format: hopeless }, status: 400, says: "multipleOf" },
  },
  {
    name: "a corrupt model file",
    lmsp: { body: { model: "corrupt" }, status: 503, says: "corrupt.gguf" },
    openai: { body: { model: "corrupt" }, status: 503, says: "corrupt.gguf" },
    ollama: { body: { model: "corrupt" }, status: 503, says: "corrupt.gguf" },
  },
  {
    name: "a truncated model file",
    lmsp: { body: { model: "truncated" }, status: 503, says: "truncated.gguf" },
    openai: { body: { model: "truncated" }, status: 503, says: "truncated.gguf" },
    ollama: { body: { model: "truncated" }, status: 503, says: "truncated.gguf" },
  },
  {
    name: "a foreign host",
    lmsp: { headers: { host: "evil.example" }, status: 403, says: "host-refused" },
    openai: { headers: { host: "evil.example" }, status: 403, says: "hosts" },
    ollama: { headers: { host: "evil.example" }, status: 403, says: /^$/ },
  },
  {
    name: "a foreign origin",
    lmsp: { headers: { origin: "https://evil.example" }, status: 403, says: "cors_origins" },
    openai: { headers: { origin: "https://evil.example" }, status: 403, says: "cors_origins" },
    ollama: { headers: { origin: "https://evil.example" }, status: 403, says: /^$/ },
  },
];

/** Says whether an answer has the door's own error format. */
const hasOwnFormat: Record<Door, (text: string) => boolean> = {
  lmsp: (text) => /^urn:lmsp:problem:/.test((JSON.parse(text) as Json).type),
  openai: (text) => {
    const { error } = JSON.parse(text) as Json;
    return typeof error.message === "string" && typeof error.type === "string" && "param" in error && "code" in error;
  },
  ollama: (text) => text === "" || /^40[45] /.test(text) || typeof (JSON.parse(text) as Json).error === "string",
};

describe.skipIf(skipReason !== undefined)("bad input", () => {
  let service: RunningService;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "plenum-bad-"));
    const corrupt = join(folder, "corrupt.gguf");
    await writeFile(corrupt, "This is no model file at all.");
    const truncated = join(folder, "truncated.gguf");
    const source = await open(starterModelFile ?? "");
    const { buffer } = await source.read(Buffer.alloc(20_000_000), 0, 20_000_000, 0);
    await source.close();
    await writeFile(truncated, buffer);
    const config = join(folder, "plenum.config.yaml");
    await writeFile(config, "limits:\n  request_bytes: 200000\n");
    service = await startService({
      args: ["--config", config],
      models: [starterModelFile ?? "", embeddingModelFile, corrupt, truncated, join(folder, "missing.gguf")],
    });
  });
  afterAll(async () => {
    await service?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function ask(door: Door, { path = paths[door], method = "POST", headers = {}, body = {} }: Ask) {
    const good = goodBodies[door];
    const text = typeof body === "string" ? body : JSON.stringify({ ...good, ...body });
    return send(service.url + path, method, { "content-type": "application/json", ...headers }, text);
  }

  for (const door of doors) {
    it.each(cases.flatMap((row) => (row[door] === undefined ? [] : [[row.name, row[door]] as const])))(
      `${door}: %s`,
      async (_name, bad) => {
        const answer = await ask(door, bad);
        expect(answer.status, answer.text).toBe(bad.status);
        expect(hasOwnFormat[door](answer.text), answer.text).toBe(true);
        expect(answer.text).toMatch(bad.says);
      },
    );

    it(`${door}: answers a good request after all of these`, async () => {
      expect((await ask(door, { status: 200, says: "" })).status).toBe(200);
    });
  }

  it("a missing file is no model, and the service serves the others", async () => {
    const { body } = await service.json("/lmsp/v1/models");
    const states = Object.fromEntries(body.data.map(({ id, state }: Json) => [id, state]));
    expect(states).toMatchObject({ [chatModel]: "loaded", corrupt: "unavailable" });
    expect(Object.keys(states).join()).not.toContain("missing");
  });

  it("the log holds neither prompts nor answers", async () => {
    await ask("openai", {
      body: { messages: [{ role: "user", content: "Xylophone zeppelin" }] },
      status: 200,
      says: "",
    });
    expect(service.output()).not.toContain("Xylophone");
    expect(service.output()).not.toContain("word word");
  });
});

describe.skipIf(skipReason !== undefined)("tokens", () => {
  let service: RunningService;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "plenum-tokens-"));
    const config = join(folder, "plenum.config.yaml");
    const token = (principal: string, secret: string, scopes: string): string =>
      `    - principal: ${principal}\n      token_sha256: ${createHash("sha256").update(secret).digest("hex")}\n      scopes: [${scopes}]\n`;
    await writeFile(
      config,
      `auth:\n  tokens:\n${token("ann", "ann-secret", "read, infer")}${token("bob", "bob-secret", "read")}`,
    );
    service = await startService({ args: ["--config", config], waitUntilReady: false });
  });
  afterAll(async () => {
    await service?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  for (const door of doors) {
    it.each([
      ["without a token", {}, 401],
      ["with a wrong token", { authorization: "Bearer wrong" }, 401],
      ["with a token that lacks the scope", { authorization: "Bearer bob-secret" }, 403],
      ["with a good token", { authorization: "Bearer ann-secret" }, 200],
    ])(`${door}: %s`, async (_name, headers, status) => {
      const answer = await send(
        service.url + paths[door],
        "POST",
        { "content-type": "application/json", ...headers },
        JSON.stringify(goodBodies[door]),
      );
      expect(answer.status, answer.text).toBe(status);
      expect(status === 200 || hasOwnFormat[door](answer.text)).toBe(true);
      expect(service.output()).not.toContain("secret");
    });
  }

  it("what one owns, another does not see", async () => {
    const made = await fetch(`${service.url}/lmsp/v1/responses`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer ann-secret" },
      body: JSON.stringify(goodBodies.lmsp),
    });
    const { id } = (await made.json()) as { id: string };
    const as = (secret: string) =>
      fetch(`${service.url}/lmsp/v1/responses/${id}`, { headers: { authorization: `Bearer ${secret}` } });
    expect((await as("ann-secret")).status).toBe(200);
    expect((await as("bob-secret")).status).toBe(404);
  });
});

/** As fetch, but with any Host and Origin. */
async function send(url: string, method: string, headers: Readonly<Record<string, string>>, body: string) {
  return new Promise<{ readonly status: number; readonly text: string }>((resolve, reject) => {
    const sent = request(
      url,
      { method, headers: { ...headers, "content-length": Buffer.byteLength(body) } },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (chunk: string) => {
          text += chunk;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}
