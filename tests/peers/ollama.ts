import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { embeddingModelFile, starterModelFile } from "../e2e/service.ts";

const address = process.env["PLENUM_TEST_OLLAMA"]?.replace(/\/+$/, "");

/** Why there is no Ollama; undefined when there is one. */
export const noOllama =
  address === undefined
    ? "no Ollama: set PLENUM_TEST_OLLAMA to the address of a running one, such as http://127.0.0.1:11434 (tests/README.md)"
    : undefined;
if (noOllama !== undefined) console.error(`!!! NOT COMPARED WITH OLLAMA: ${noOllama}`);

/** The running Ollama, with our weights in it under names of the tests' own. */
export interface OllamaPeer {
  readonly url: string;
  readonly version: string;
  readonly chatModel: string;
  readonly embeddingModel: string;
  /** Takes the models out again. */
  remove(): Promise<void>;
}

/** Imports the weights of both test models into the running Ollama. */
export async function openOllama(): Promise<OllamaPeer> {
  const url = address ?? "";
  const chatModel = "plenum-test-chat:latest";
  const embeddingModel = "plenum-test-embed:latest";
  await importModel(url, chatModel, starterModelFile ?? "");
  await importModel(url, embeddingModel, embeddingModelFile);
  return {
    url,
    version: JSON.parse(await (await fetch(`${url}/api/version`)).text()).version,
    chatModel,
    embeddingModel,
    remove: async () => {
      for (const model of [chatModel, embeddingModel]) {
        await fetch(`${url}/api/delete`, { method: "DELETE", body: JSON.stringify({ model }) });
      }
    },
  };
}

async function importModel(url: string, model: string, path: string): Promise<void> {
  const bytes = await readFile(path);
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  await expectOk(await fetch(`${url}/api/blobs/${digest}`, { method: "POST", body: bytes }));
  const body = JSON.stringify({ model, stream: false, files: { "model.gguf": digest } });
  await expectOk(await fetch(`${url}/api/create`, { method: "POST", body }));
}

async function expectOk(answer: Response): Promise<void> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${text}`);
}
