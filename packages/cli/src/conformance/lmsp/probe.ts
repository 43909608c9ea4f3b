import { request as rawRequest } from "node:http";

/** What a service answered, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined where it is none. */
  readonly json: unknown;
}

/** One block of an event stream, as it came. */
export interface Block {
  readonly id: string | undefined;
  readonly event: string | undefined;
  /** Text of its data lines. */
  readonly data: string;
  /** The data as JSON; undefined where it is none. */
  readonly json: unknown;
}

/** An event stream, read as far as was asked. */
export interface Stream {
  readonly status: number;
  readonly headers: Headers;
  /** Without comments. */
  readonly blocks: readonly Block[];
  /** False: the reader left before its end. */
  readonly hasEnded: boolean;
  /** The body where it is no event stream. */
  readonly text: string;
}

export interface Ask {
  readonly method?: string;
  /** Sent as JSON; a string goes as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Null: none is sent. @default the run's own token */
  readonly token?: string | null;
}

export interface StreamAsk extends Ask {
  /** Leaves after a block for which this is true. */
  readonly until?: (block: Block, count: number) => boolean;
}

export interface ProbeOptions {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly token: string | undefined;
  /** Milliseconds for one request. */
  readonly timeoutMs: number;
}

/** Asks a service from outside, as any client could: nothing of it is known but its address. */
export class Probe {
  readonly #options: ProbeOptions;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  get baseUrl(): string {
    return this.#options.baseUrl;
  }

  get token(): string | undefined {
    return this.#options.token;
  }

  async ask(path: string, ask: Ask = {}): Promise<Answer> {
    const response = await this.#fetch(path, ask, AbortSignal.timeout(this.#options.timeoutMs));
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: parse(text) };
  }

  /** Reads an event stream to its end, or as far as `until` says. */
  async stream(path: string, { until, ...ask }: StreamAsk = {}): Promise<Stream> {
    const leaving = new AbortController();
    const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(this.#options.timeoutMs)]);
    const headers = { accept: "text/event-stream", ...ask.headers };
    const response = await this.#fetch(path, { ...ask, headers }, signal);
    const { status } = response;
    const start = { status, headers: response.headers };
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
    if (!isStream || response.body === null) {
      return { ...start, blocks: [], hasEnded: true, text: await response.text() };
    }
    const blocks: Block[] = [];
    let rest = "";
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    while (true) {
      const { done, value } = await reader.read();
      if (done) return { ...start, blocks, hasEnded: true, text: "" };
      rest += decoder.decode(value, { stream: true });
      const parts = rest.split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const block = toBlock(part);
        if (block === undefined) continue;
        blocks.push(block);
        if (until?.(block, blocks.length)) {
          leaving.abort();
          return { ...start, blocks, hasEnded: false, text: "" };
        }
      }
    }
  }

  /** A request with a Host of its own, which fetch would not send. @returns the status */
  askAs(host: string, path: string): Promise<number> {
    const { hostname, port } = new URL(this.#options.baseUrl);
    return new Promise((resolve, reject) => {
      const sent = rawRequest(
        { hostname: hostname.replace(/^\[|\]$/g, ""), port, path, headers: { host }, timeout: this.#options.timeoutMs },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode ?? 0);
        },
      );
      sent.on("error", reject);
      sent.end();
    });
  }

  #fetch(path: string, { method, body, headers, token = this.#options.token }: Ask, signal: AbortSignal) {
    const all: Record<string, string> = { ...headers };
    if (typeof token === "string") all["authorization"] = `Bearer ${token}`;
    if (body !== undefined) all["content-type"] ??= "application/json";
    const url = path.startsWith("/") ? `${this.#options.baseUrl}${path}` : path;
    return fetch(url, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: all,
      redirect: "manual",
      signal,
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
  }
}

function toBlock(text: string): Block | undefined {
  let id: string | undefined;
  let event: string | undefined;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("event: ")) event = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (id === undefined && event === undefined && data.length === 0) return undefined;
  const joined = data.join("\n");
  return { id, event, data: joined, json: parse(joined) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
