import { isJsonObject, type JsonObject } from "../json.ts";
import type { EventWriter } from "../server/event-writer.ts";
import type { AdaptedStream } from "./adapt-chunks.ts";

/** Native events of a real server as the profile's, as the door makes them of its own. */
export function adaptResponse(writer: EventWriter, events: readonly JsonObject[]): AdaptedStream {
  const partials: string[] = [];
  const callIds = new Map<unknown, string>();
  for (const event of events) {
    const json = JSON.stringify(event);
    const index = event["output_index"] as number;
    const item = isJsonObject(event["item"]) ? event["item"] : {};
    const callId = callIds.get(event["item_id"]) ?? "";
    let made: string | undefined;
    if (event["type"] === "response.output_text.delta") made = writer.textDelta(index, event["delta"] as string, json);
    else if (event["type"] === "response.output_item.added" && item["type"] === "function_call") {
      const id = item["call_id"] as string;
      callIds.set(item["id"], id);
      made = writer.toolCallStarted({ index, itemId: item["id"] as string, callId: id }, item["name"] as string, json);
    } else if (event["type"] === "response.function_call_arguments.delta") {
      made = writer.toolCallDelta(callId, event["delta"] as string, json);
    } else if (event["type"] === "response.function_call_arguments.done") made = writer.toolCallCompleted(callId, json);
    else if (event["type"] === "response.completed") {
      return { partials, terminal: writer.completed(event["response"] as object) };
    } else made = writer.openAIChunk(json);
    if (made !== undefined) partials.push(made);
  }
  throw new Error("the recorded stream has no end");
}
