import OpenAI from "openai";
import type { JsonObject } from "../json.ts";

function sdkOver(sse: string): OpenAI {
  return new OpenAI({
    apiKey: "none",
    baseURL: "http://none/v1",
    maxRetries: 0,
    fetch: async () => new Response(sse, { headers: { "content-type": "text/event-stream" } }),
  });
}

/** The chat that the official SDK puts together from server-sent events. */
export async function assembleChat(sse: string): Promise<JsonObject> {
  const stream = sdkOver(sse).chat.completions.stream({ model: "m", messages: [] });
  return JSON.parse(JSON.stringify(await stream.finalChatCompletion())) as JsonObject;
}

/** What the official SDK sees of a streamed response: the texts it was told piece by piece, and the end. */
export async function assembleResponse(sse: string): Promise<{ pieces: string; final: JsonObject; types: string[] }> {
  const stream = sdkOver(sse).responses.stream({ model: "m", input: "" });
  let pieces = "";
  const types: string[] = [];
  stream.on("event", (event) => {
    types.push(event.type);
    if (event.type === "response.output_text.delta" || event.type === "response.function_call_arguments.delta") {
      pieces += event.delta;
    }
  });
  const final = JSON.parse(JSON.stringify(await stream.finalResponse())) as JsonObject;
  return { pieces, final, types };
}

export function toSse(chunks: readonly JsonObject[]): string {
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
}
