import { type Backend, type TaskProgress, toCoreError } from "@plenum/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createOllamaBackend } from "./index.ts";
import { FakeOllama, json, lines } from "./testing/fake-ollama.ts";

/** Lines as Ollama 0.17.4 writes them; of a pull that succeeds there is no recording here. */
const digest = `sha256:${"4e".repeat(32)}`;
const pulled = [
  { status: "pulling manifest" },
  { status: "pulling 4e4e4e4e4e4e", digest, total: 1000 },
  { status: "pulling 4e4e4e4e4e4e", digest, total: 1000, completed: 600 },
  { status: "verifying sha256 digest" },
  { status: "writing manifest" },
  { status: "success" },
];

let ollama: FakeOllama;
let backend: Backend;

beforeEach(async () => {
  ollama = await new FakeOllama().start();
  backend = createOllamaBackend({ id: "ollama", baseUrl: ollama.url, probeIntervalMs: 3_600_000 });
  await backend.ready;
});
afterEach(async () => {
  await backend.close();
  await ollama.stop();
});

const never = new AbortController().signal;

test("a pull tells Ollama's own steps, and the list is looked at again", async () => {
  ollama.answers.set("/api/pull", (_seen, response) => lines(response, pulled));
  const told: TaskProgress[] = [];
  const looks = ollama.seen.filter(({ path }) => path === "/api/tags").length;
  await backend.pull?.("llama3.2:1b", (step) => told.push(step), never);
  expect(ollama.bodies("/api/pull")).toEqual([{ model: "llama3.2:1b", stream: true }]);
  expect(told[2]).toEqual({ done: 600, total: 1000, unit: "bytes", step: "pulling 4e4e4e4e4e4e", digest });
  expect(told.at(-1)).toEqual({ done: 0, unit: "bytes", step: "success" });
  expect(ollama.seen.filter(({ path }) => path === "/api/tags").length).toBe(looks + 1);
});

test.each([
  ["pull model manifest: file does not exist", "not-found"],
  ['pull model manifest: Get "https://registry/v2": dial tcp: lookup registry: no such host', "backend-unavailable"],
  ["something else", "backend-error"],
])("an error line: %s", async (error, code) => {
  ollama.answers.set("/api/pull", (_seen, response) => lines(response, [{ status: "pulling manifest" }, { error }]));
  await expect(backend.pull?.("x", () => {}, never)).rejects.toMatchObject({ code });
});

test("a status in place of a stream, an end before the last line, no JSON", async () => {
  ollama.answers.set("/api/pull", (_seen, response) => json(response, 400, { error: "invalid model name" }));
  await expect(backend.pull?.("x", () => {}, never)).rejects.toMatchObject({ code: "backend-error" });
  ollama.answers.set("/api/pull", (_seen, response) => lines(response, pulled.slice(0, 3)));
  await expect(backend.pull?.("x", () => {}, never)).rejects.toMatchObject({ code: "backend-error" });
  ollama.answers.set("/api/pull", (_seen, response) => void response.writeHead(200).end("<html>\n"));
  await expect(backend.pull?.("x", () => {}, never)).rejects.toMatchObject({ code: "backend-error" });
});

test("an abort closes the connection, by which Ollama stops", async () => {
  ollama.answers.set("/api/pull", (_seen, response) => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    response.write(`${JSON.stringify(pulled[0])}\n`);
  });
  const abort = new AbortController();
  const pulling = backend.pull?.("x", () => abort.abort(new Error("enough")), abort.signal);
  await expect(pulling).rejects.toThrow("enough");
  await ollama.cut;
});

test("a model is deleted by Ollama", async () => {
  ollama.answers.set("/api/delete", (_seen, response) => void response.writeHead(200).end());
  await backend.delete?.("smollm2:135m");
  expect(ollama.seen.find(({ path }) => path === "/api/delete")).toMatchObject({
    method: "DELETE",
    body: { model: "smollm2:135m", name: "smollm2:135m" },
  });
  const error = await backend.delete?.("none").catch(toCoreError);
  expect(error).toMatchObject({ code: "model-not-found" });
});
