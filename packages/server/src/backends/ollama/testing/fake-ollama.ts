import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { listOf } from "../json-fields.ts";
import { fixture } from "./fixtures.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: SeenBody;
}

/** Fields that the server looks at, and all others. */
export interface SeenBody {
  readonly [field: string]: unknown;
  readonly model: string;
  readonly input: readonly string[];
  readonly options?: { readonly num_predict?: number };
}

type Answer = (seen: SeenRequest, response: ServerResponse) => void | Promise<void>;

/** A server that has the recorded models and answers as recorded; tests replace single answers. */
export class FakeOllama {
  readonly seen: SeenRequest[] = [];
  /** Names of the models that it has loaded. */
  readonly loaded = new Set<string>();
  /** Answers in place of the usual ones, by path. */
  readonly answers = new Map<string, Answer>();
  /** Resolves when a connection closes under a running answer, with the time of it. */
  readonly cut: Promise<number>;
  /** Connections that were opened. */
  connections = 0;
  version = "0.17.4";
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #noteCut: (at: number) => void = () => {};
  #port = 0;

  constructor() {
    this.cut = new Promise((resolve) => {
      this.#noteCut = resolve;
    });
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#server.on("connection", (socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens; the second time on the same port. */
  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    const address = this.#server.address() as AddressInfo;
    this.#port = address.port;
    return this;
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Bodies that went to a path, in order. */
  bodies(path: string): readonly SeenBody[] {
    return this.seen.filter((request) => request.path === path).map(({ body }) => body);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const chunk of request) text += chunk;
    const path = request.url ?? "";
    const seen = {
      method: request.method ?? "",
      path,
      headers: request.headers,
      body: text === "" ? {} : JSON.parse(text),
    };
    this.seen.push(seen);
    response.once("close", () => {
      if (!response.writableFinished) this.#noteCut(performance.now());
    });
    await (this.answers.get(path) ?? this.#usual)(seen, response);
  }

  readonly #usual: Answer = async (seen, response) => {
    const { path, body } = seen;
    if (path === "/api/version") return json(response, 200, { version: this.version });
    if (path === "/api/tags") return json(response, 200, tags());
    if (path === "/api/ps") return json(response, 200, this.#ps());
    if (path === "/api/show") return show(body.model, response);
    if (shows[body.model] === undefined) return json(response, 404, { error: `model '${body.model}' not found` });
    if (path === "/api/embed") return this.#embed(body, response);
    if (path === "/api/generate" && body["prompt"] === undefined) return this.#load(body, response);
    this.loaded.add(body.model);
    if (path === "/api/generate") return lines(response, recorded("generate-stream"));
    return body.options?.num_predict === undefined ? endless(response) : lines(response, recorded("chat-stream"));
  };

  #ps(): unknown {
    const [first] = listOf(fixture("ps-loaded").response.body, "models");
    return { models: [...this.loaded].map((name) => ({ ...Object(first), name, model: name })) };
  }

  #load(body: SeenBody, response: ServerResponse): void {
    if (body["keep_alive"] === 0) this.loaded.delete(body.model);
    else this.loaded.add(body.model);
    json(response, 200, { model: body.model, response: "", done: true, done_reason: "load" });
  }

  #embed({ model, input }: SeenBody, response: ServerResponse): void {
    this.loaded.add(model);
    const embeddings = input.map((text) => (text.includes("cat") ? [0.6, 0.8] : [1, 0]));
    json(response, 200, { model, embeddings, load_duration: 5_000_000, prompt_eval_count: 4 * input.length });
  }
}

const shows: Readonly<Record<string, string>> = {
  "smollm2:135m": "show",
  "tools-model:latest": "show-tools-model",
  "think-model:latest": "show-think-model",
  "fim-model:latest": "show-fim-model",
  "sys-model:latest": "show-system-params",
  "all-minilm:l6": "show-embed-model",
};

function tags(): unknown {
  const [embedding, chat] = listOf(fixture("tags-get").response.body, "models");
  const named = Object.keys(shows).map((name) => ({
    ...Object(name.startsWith("all-minilm") ? embedding : chat),
    name,
    model: name,
  }));
  return { models: named };
}

function show(model: string, response: ServerResponse): void {
  const name = shows[model];
  if (name === undefined) json(response, 404, { error: `model '${model}' not found` });
  else json(response, 200, fixture(name).response.body);
}

export function recorded(name: string): readonly unknown[] {
  return (fixture(name).response.lines ?? []).map((line) => line.json);
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
}

/** One write a line. */
export async function lines(response: ServerResponse, all: readonly unknown[]): Promise<void> {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (const line of all) {
    response.write(`${JSON.stringify(line)}\n`);
    await pause(1);
  }
  response.end();
}

export async function endless(response: ServerResponse): Promise<void> {
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  while (!response.destroyed) {
    response.write(`${JSON.stringify({ message: { role: "assistant", content: "on " }, done: false })}\n`);
    await pause(2);
  }
}
