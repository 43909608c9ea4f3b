import { type Case, type Facts, needsModel, type Visit } from "../case.ts";
import { textOf } from "../expectations.ts";
import { root } from "../requests.ts";
import { asValue, linesOf } from "../value.ts";

const withDoor =
  (kind: "openai" | "ollama") =>
  (facts: Facts): string | undefined =>
    facts.interfaces.has(kind) ? needsModel(facts) : `no interface of the kind ${kind} is declared`;

export const compatibilityCases: readonly Case[] = [
  { id: "compatibility.one-catalog", section: "page 8", run: oneCatalog },
  { id: "compatibility.chat", section: "page 8", skip: withDoor("openai"), run: openaiChat },
  { id: "compatibility.responses", section: "page 8", skip: withDoor("openai"), run: openaiResponses },
  { id: "compatibility.embeddings", section: "page 8", skip: withDoor("openai"), run: openaiEmbeddings },
  { id: "compatibility.openai-errors", section: "page 8", skip: withDoor("openai"), run: openaiErrors },
  { id: "compatibility.ollama", section: "page 8", skip: withDoor("ollama"), run: ollama },
  { id: "compatibility.ollama-errors", section: "page 8", skip: withDoor("ollama"), run: ollamaErrors },
  { id: "compatibility.one-core", section: "page 8", skip: withDoor("openai"), run: oneCore },
];

const messages = [{ role: "user", content: "Say hello." }];

async function oneCatalog({ probe, facts, expect }: Visit): Promise<void> {
  const native = asValue((await probe.ask(`${root}/models`)).json).at("data").list;
  const ids = native.map((model) => model.at("id").text ?? "").sort();
  const openai = facts.interfaces.get("openai");
  if (openai !== undefined) {
    const page = asValue((await probe.ask(`${openai}/models`)).json);
    const listed = page
      .at("data")
      .list.map((model) => model.at("id").text ?? "")
      .sort();
    expect(page.at("object").text === "list", "OpenAI's list of models does not say that it is one.");
    expect(listed.join("\n") === ids.join("\n"), "OpenAI's list has other models than the catalog.");
  }
  const ollamaUrl = facts.interfaces.get("ollama");
  if (ollamaUrl !== undefined) {
    const page = asValue((await probe.ask(`${ollamaUrl}/api/tags`)).json);
    const listed = page.at("models").list.map((model) => model.at("name").text ?? "");
    const missing = ids.find((id) => !listed.includes(id) && !listed.includes(`${id}:latest`));
    expect(missing === undefined, `Ollama's list lacks ${missing}.`);
  }
}

async function openaiChat({ probe, facts, model, expect }: Visit): Promise<void> {
  const path = `${facts.interfaces.get("openai")}/chat/completions`;
  const body = { model, messages, max_tokens: 16, temperature: 0 };
  const whole = asValue((await probe.ask(path, { body })).json);
  expect(whole.at("object").text === "chat.completion", `Its object is ${whole.at("object").json}.`);
  expect((whole.at("choices", 0, "message", "content").text ?? "") !== "", "It has no content.");
  expect(whole.at("usage", "total_tokens").number !== undefined, "It has no usage.");
  const stream = await probe.stream(path, { body: { ...body, stream: true } });
  const last = stream.blocks.at(-1);
  expect(last?.data === "[DONE]", `The stream ends with ${last?.data.slice(0, 40) ?? "nothing"}.`);
  const chunks = stream.blocks.slice(0, -1).map(({ json }) => asValue(json));
  const ids = new Set(chunks.map((chunk) => chunk.at("id").text));
  expect(ids.size === 1, `Its chunks have ${ids.size} ids.`);
  expect(
    chunks.every((chunk) => chunk.at("object").text === "chat.completion.chunk"),
    "A chunk has another object.",
  );
  const finishes = chunks.filter((chunk) => chunk.at("choices", 0, "finish_reason").text !== undefined);
  expect(finishes.length === 1, `${finishes.length} chunks have a finish_reason.`);
  const text = chunks.map((chunk) => chunk.at("choices", 0, "delta", "content").text ?? "").join("");
  expect(text !== "", "Its chunks have no text.");
}

async function openaiResponses({ probe, facts, model, expect }: Visit): Promise<void> {
  const path = `${facts.interfaces.get("openai")}/responses`;
  const answer = asValue((await probe.ask(path, { body: { model, input: "Say hello.", max_output_tokens: 16 } })).json);
  expect(answer.at("object").text === "response", `Its object is ${answer.at("object").json}.`);
  expect(/^resp_\w+$/.test(answer.at("id").text ?? ""), `Its id is ${answer.at("id").json}.`);
  expect(answer.at("output").list.length > 0, "It has no output.");
}

async function openaiEmbeddings({ probe, facts, model, expect }: Visit): Promise<void> {
  const path = `${facts.interfaces.get("openai")}/embeddings`;
  const { embeddingModel } = facts;
  if (embeddingModel !== undefined) {
    const answer = asValue((await probe.ask(path, { body: { model: embeddingModel, input: ["a", "b"] } })).json);
    expect(answer.at("data").list.length === 2, `Two texts give ${answer.at("data").list.length} vectors.`);
    expect(answer.at("data", 0, "embedding").list.length > 0, "A vector is empty.");
  }
  if (model === embeddingModel) return;
  const native = asValue((await probe.ask(`${root}/models/${model}`)).json);
  if (native.at("capabilities", "embeddings").raw === true) return;
  const refused = await probe.ask(path, { body: { model, input: "a" } });
  expect(refused.status >= 400 && refused.status < 500, `A model without embeddings answers ${refused.status}.`);
  expect(asValue(refused.json).at("error", "message").text !== undefined, "The refusal is not in OpenAI's form.");
}

async function openaiErrors({ probe, facts, model, expect }: Visit): Promise<void> {
  const path = `${facts.interfaces.get("openai")}/chat/completions`;
  const bodies: readonly (readonly [string, unknown, number])[] = [
    ["An unknown model", { model: "no-such-model", messages }, 404],
    ["Messages of a wrong type", { model, messages: 5 }, 400],
    ["Invalid JSON", "{", 400],
  ];
  for (const [what, body, wanted] of bodies) {
    const { status, json, headers } = await probe.ask(path, { method: "POST", body });
    expect(status === wanted, `${what} answers ${status}, not ${wanted}.`);
    const error = asValue(json).at("error");
    expect(
      error.at("message").text !== undefined && error.at("type").text !== undefined,
      `${what}: not OpenAI's form.`,
    );
    expect(headers.get("content-type")?.startsWith("application/json") ?? false, `${what}: not application/json.`);
  }
}

async function ollama({ probe, facts, model, expect }: Visit): Promise<void> {
  const url = facts.interfaces.get("ollama") ?? "";
  const options = { num_predict: 16, temperature: 0 };
  const chat = await probe.ask(`${url}/api/chat`, { body: { model, messages, options } });
  const lines = linesOf(chat.text);
  expect(chat.headers.get("content-type")?.startsWith("application/x-ndjson") ?? false, "A chat is not x-ndjson.");
  expect(lines.length > 1, "A chat does not stream by itself.");
  expect(
    lines.every((line, at) => line.at("done").raw === (at === lines.length - 1)),
    "`done` is not in the last line only.",
  );
  expect(
    lines.some((line) => (line.at("message", "content").text ?? "") !== ""),
    "A chat has no text.",
  );
  const whole = asValue(
    (await probe.ask(`${url}/api/chat`, { body: { model, messages, options, stream: false } })).json,
  );
  expect((whole.at("message", "content").text ?? "") !== "", "A chat without stream has no text.");
  const body = { model, prompt: "Say hello.", options, stream: false };
  const generated = asValue((await probe.ask(`${url}/api/generate`, { body })).json);
  expect((generated.at("response").text ?? "") !== "", "generate has no response.");
}

async function ollamaErrors({ probe, facts, expect }: Visit): Promise<void> {
  const url = facts.interfaces.get("ollama") ?? "";
  const { status, json } = await probe.ask(`${url}/api/chat`, { body: { model: "no-such-model", messages } });
  expect(status === 404, `An unknown model answers ${status}.`);
  expect(asValue(json).at("error").text !== undefined, "The error is not in Ollama's form.");
}

async function oneCore({ probe, facts, model, expect }: Visit): Promise<void> {
  const path = `${facts.interfaces.get("openai")}/chat/completions`;
  const headers = { "x-lmsp-on-disconnect": "continue" };
  const answer = await probe.ask(path, { body: { model, messages, max_tokens: 16 }, headers });
  const id = answer.headers.get("x-lmsp-response-id");
  expect(id !== null, "A chat has no X-LMSP-Response-Id.");
  if (id === null) return;
  const native = await probe.ask(`${root}/responses/${id}`);
  expect(native.status === 200, `Read by that id it answers ${native.status}.`);
  const response = asValue(native.json);
  expect(response.at("door").text === "openai", `Its door is ${response.at("door").json}.`);
  const content = asValue(answer.json).at("choices", 0, "message", "content").text;
  expect(textOf(response) === content, "Read by that id its text is another.");
  const list = asValue((await probe.ask(`${root}/responses?door=openai&limit=50`)).json).at("data").list;
  expect(
    list.some((each) => each.at("id").text === id),
    "It is not listed among the responses.",
  );
}
