/** For tests: how a good answer looks in each API that the HTTP backends read. */
export interface Wire {
  readonly api: "openai" | "ollama";
  readonly isEmbedding: boolean;
  /** Content type of an answer. */
  readonly type: string;
  /** One event with the text `one`. For embeddings all of the answer. */
  readonly word: string;
  /** The event that ends the answer. */
  readonly finish: string;
  /** What follows the end. */
  readonly sentinel: string;
  /** An event that holds this JSON. */
  readonly event: (json: string) => string;
  /** JSON of an event with this text. */
  readonly textJson: (text: string) => string;
}

const openaiEvent = (json: string): string => `data: ${json}\n\n`;
const openaiText = (text: string): string =>
  `{"choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}},"finish_reason":null}]}`;

const openai: Wire = {
  api: "openai",
  isEmbedding: false,
  type: "text/event-stream",
  word: openaiEvent(openaiText("one")),
  finish: openaiEvent('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'),
  sentinel: openaiEvent("[DONE]"),
  event: openaiEvent,
  textJson: openaiText,
};

const ollamaEvent = (json: string): string => `${json}\n`;
const ollamaText = (text: string): string =>
  `{"message":{"role":"assistant","content":${JSON.stringify(text)}},"done":false}`;

const ollama: Wire = {
  api: "ollama",
  isEmbedding: false,
  type: "application/x-ndjson",
  word: ollamaEvent(ollamaText("one")),
  finish: ollamaEvent(
    '{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":1,"eval_count":1}',
  ),
  sentinel: "",
  event: ollamaEvent,
  textJson: ollamaText,
};

const whole = (api: Wire["api"], json: string): Wire => ({
  api,
  isEmbedding: true,
  type: "application/json",
  word: json,
  finish: "",
  sentinel: "",
  event: (other) => other,
  textJson: (text) => JSON.stringify({ text }),
});

/** By the path of a request. */
export const wires: Readonly<Record<string, Wire>> = {
  "/v1/chat/completions": openai,
  "/api/chat": ollama,
  "/v1/embeddings": whole("openai", '{"data":[{"index":0,"embedding":[0.6,0.8]}],"usage":{"prompt_tokens":1}}'),
  "/api/embed": whole("ollama", '{"embeddings":[[0.6,0.8]],"prompt_eval_count":1}'),
};
