import { readError } from "../errors.ts";
import { isCount, isJsonObject, type JsonObject, parseObject } from "../json.ts";
import { type EventResult, whole, wrong } from "./event-result.ts";
import { ToolCallReader } from "./read-tool-call.ts";

/**
 * Reads the events of one operation. Never throws. It keeps the ids of tool calls, since peers that follow the
 * profile's first text name a call only in its first event.
 */
export class EventReader {
  readonly #toolCalls = new ToolCallReader();

  read(input: Uint8Array | string): EventResult {
    const parsed = parseObject(input);
    if (!parsed.ok) return { kind: "invalid", message: `The event can't be read: ${parsed.problem}.` };
    return this.readValue(parsed.value);
  }

  /** As `read`, of a value that is parsed already. */
  readValue(value: JsonObject): EventResult {
    const { type } = value;
    switch (type) {
      case "response.output_text.delta":
        if (!isCount(value["index"])) return wrong(type, "index");
        return typeof value["delta"] === "string" ? whole(value) : wrong(type, "delta");
      case "response.tool_call.started":
      case "response.tool_call.delta":
      case "response.tool_call.completed":
      case "response.tool_call.error":
        return this.#toolCalls.read(type, value);
      case "response.usage":
        return isJsonObject(value["usage"]) ? whole(value) : wrong(type, "usage");
      case "response.diagnostics":
        return isJsonObject(value["diagnostics"]) ? whole(value) : wrong(type, "diagnostics");
      case "response.openai_chunk":
        return isJsonObject(value["openai_chunk"]) ? whole(value) : wrong(type, "openai_chunk");
      case "response.completed":
        return isJsonObject(value["body"]) ? whole(value) : wrong(type, "body");
      case "response.error": {
        const error = readError(value["error"]);
        if (error === undefined) return wrong(type, "error");
        return whole(error === value["error"] ? value : { ...value, error });
      }
      case "response.cancelled":
        return typeof value["reason"] === "string" ? whole(value) : wrong(type, "reason");
      default:
        if (typeof type === "string") return { kind: "unknown", type };
        return { kind: "invalid", message: "The event has no type.", field: "type" };
    }
  }
}
