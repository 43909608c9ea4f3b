import OpenAI from "openai";
import type { JsonObject } from "../json.ts";

/** The answer that the official SDK puts together from server-sent events. */
export async function assembleStream(sse: string): Promise<JsonObject> {
  const client = new OpenAI({
    apiKey: "none",
    baseURL: "http://none/v1",
    fetch: async () => new Response(sse, { headers: { "content-type": "text/event-stream" } }),
  });
  const stream = client.chat.completions.stream({ model: "m", messages: [] });
  return JSON.parse(JSON.stringify(await stream.finalChatCompletion())) as JsonObject;
}

export function toSse(chunks: readonly JsonObject[]): string {
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
}
