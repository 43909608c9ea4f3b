import { request } from "node:http";

/** A streamed answer as its client saw it; times in milliseconds of `performance.now()`. */
export interface StreamedAnswer {
  readonly sentAt: number;
  /** When each piece of text came. */
  readonly arrivals: readonly number[];
  readonly endedAt: number;
  readonly text: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
}

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly maxTokens: number;
  /** Tokens that may not be chosen: an answer then goes on to its limit. */
  readonly barred: readonly number[];
}

interface Chunk {
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  } | null;
  readonly error?: { readonly message?: string };
}

/**
 * Asks a server's OpenAI door for a greedy answer.
 * @param onText is called at each piece of text
 * @throws Error when the answer is no whole stream, or the signal's reason
 */
export function streamChat(
  url: string,
  { model, messages, maxTokens, barred }: ChatRequest,
  signal?: AbortSignal,
  onText?: () => void,
): Promise<StreamedAnswer> {
  const body = JSON.stringify({
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0,
    max_tokens: maxTokens,
    logit_bias: Object.fromEntries(barred.map((token) => [token, -100])),
  });
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const arrivals: number[] = [];
    let text = "";
    let usage: Chunk["usage"];
    let rest = "";
    const take = (line: string) => {
      if (!line.startsWith("data: {")) return;
      const chunk: Chunk = JSON.parse(line.slice(6));
      if (chunk.error !== undefined) throw new Error(`the stream broke: ${chunk.error.message}`);
      usage = chunk.usage ?? usage;
      const piece = chunk.choices?.[0]?.delta?.content;
      if (!piece) return;
      arrivals.push(performance.now());
      text += piece;
      onText?.();
    };
    const outgoing = request(
      `${url}/v1/chat/completions`,
      { method: "POST", agent: false, headers: { "content-type": "application/json" }, ...(signal ? { signal } : {}) },
      (answer) => {
        answer.setEncoding("utf8");
        answer.on("error", reject);
        answer.on("data", (data: string) => {
          const lines = (rest + data).split("\n");
          rest = lines.pop() ?? "";
          try {
            for (const line of lines) take(line);
          } catch (error) {
            outgoing.destroy();
            reject(error);
          }
        });
        answer.on("end", () => {
          if (answer.statusCode !== 200 || !usage) {
            reject(new Error(`status ${answer.statusCode}, no whole stream: ${rest.slice(0, 500)}`));
            return;
          }
          resolve({
            sentAt,
            arrivals,
            endedAt: performance.now(),
            text,
            promptTokens: usage.prompt_tokens,
            cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
            completionTokens: usage.completion_tokens,
          });
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
