import { isJsonObject, type JsonObject } from "../json.ts";
import type { EventWriter, TerminalResult } from "../server/event-writer.ts";
import { toolCallItemId } from "../tool-call-item-id.ts";
import { readUsage } from "../usage.ts";

/** What a service sends for a chat. */
export interface AdaptedStream {
  readonly partials: readonly string[];
  readonly terminal: TerminalResult;
}

function list(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

/**
 * Chunks of a real server as the profile's events, as an adapter in front of it makes them: each chunk becomes the events
 * of what it holds, all of which carry it. The final body is what an OpenAI client puts together.
 */
export function adaptChunks(writer: EventWriter, chunks: readonly JsonObject[], body: JsonObject): AdaptedStream {
  const partials: string[] = [];
  const callIds = new Map<string, string>();
  for (const chunk of chunks) {
    const json = JSON.stringify(chunk);
    const made: string[] = [];
    for (const choice of list(chunk["choices"])) {
      const index = choice["index"] as number;
      const delta = isJsonObject(choice["delta"]) ? choice["delta"] : {};
      const { content } = delta;
      if (typeof content === "string" && content !== "") made.push(writer.textDelta(index, content, json));
      for (const call of list(delta["tool_calls"])) {
        const key = `${index} ${call["index"]}`;
        const called = call["function"] as { name?: string; arguments?: string };
        const id = callIds.get(key) ?? String(call["id"]);
        if (!callIds.has(key)) {
          callIds.set(key, id);
          const number = call["index"] as number;
          const place = { index: number, itemId: toolCallItemId(index, number), callId: id };
          made.push(writer.toolCallStarted(place, String(called.name), json));
        }
        if (called.arguments) made.push(writer.toolCallDelta(id, called.arguments, json));
      }
    }
    if (isJsonObject(chunk["usage"])) made.push(writer.usage(readUsage(chunk["usage"]), json));
    const bare = made.length === 0 ? writer.openAIChunk(json) : undefined;
    partials.push(...(bare === undefined ? made : [bare]));
  }
  return { partials, terminal: writer.completed(body) };
}
