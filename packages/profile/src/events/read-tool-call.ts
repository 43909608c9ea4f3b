import { readError } from "../errors.ts";
import { isCount, isJsonObject, isNonEmptyString, type JsonObject } from "../json.ts";
import type { ToolCallEvent, ToolCallStarted } from "./event.ts";
import { type EventResult, whole, wrong } from "./event-result.ts";

interface Call {
  readonly itemId: string;
  readonly callId: string;
  name: string;
  arguments: string;
  isStarted: boolean;
}

type ToolCallType = ToolCallEvent["type"];

/**
 * Tool-call events in both forms: the contract's flat members, which win, or the older `tool_call` object, whose members
 * are those of OpenAI's chunks (`index`, `id`, `function.name`, `function.arguments`). The older form names a call once
 * and need not start it.
 */
export class ToolCallReader {
  /** Calls by their place, which is all that later events of the older form may give. */
  readonly #calls = new Map<number, Call>();

  read(type: ToolCallType, value: JsonObject): EventResult {
    const toolCall = value["tool_call"];
    const isFlat = value["call_id"] !== undefined && value["item_id"] !== undefined;
    return isFlat || !isJsonObject(toolCall) ? this.#readFlat(type, value) : this.#readOlder(type, value, toolCall);
  }

  #readFlat(type: ToolCallType, value: JsonObject): EventResult {
    const { index, item_id: itemId, call_id: callId, name, arguments: args } = value;
    if (!isCount(index)) return wrong(type, "index");
    if (!isNonEmptyString(itemId)) return wrong(type, "item_id");
    if (!isNonEmptyString(callId)) return wrong(type, "call_id");
    switch (type) {
      case "response.tool_call.started":
        if (!isNonEmptyString(name)) return wrong(type, "name");
        this.#calls.set(index, { itemId, callId, name, arguments: "", isStarted: true });
        return whole(value);
      case "response.tool_call.delta":
        return typeof value["arguments_delta"] === "string" ? whole(value) : wrong(type, "arguments_delta");
      case "response.tool_call.completed":
        if (!isNonEmptyString(name)) return wrong(type, "name");
        return typeof args === "string" ? whole(value) : wrong(type, "arguments");
      case "response.tool_call.error": {
        const error = readError(value["error"]);
        if (error === undefined) return wrong(type, "error");
        return whole(error === value["error"] ? value : { ...value, error });
      }
    }
  }

  #readOlder(type: ToolCallType, value: JsonObject, toolCall: JsonObject): EventResult {
    const index = isCount(toolCall["index"]) ? toolCall["index"] : value["index"];
    if (!isCount(index)) return wrong(type, "index");
    const called = isJsonObject(toolCall["function"]) ? toolCall["function"] : toolCall;
    const call = this.#callAt(index, toolCall, called["name"]);
    const place = { index, item_id: call.itemId, call_id: call.callId };
    const chunk = value["openai_chunk"] === undefined ? {} : { openai_chunk: value["openai_chunk"] };
    if (type === "response.tool_call.error") {
      const error = readError(value["error"] ?? toolCall["error"]);
      if (error === undefined) return wrong(type, "error");
      return whole({ type, ...place, error, ...chunk }, this.#startOf(call, place));
    }
    const { name } = call;
    if (name === "") return wrong(type, "tool_call.function.name");
    if (type === "response.tool_call.started") {
      call.isStarted = true;
      return whole({ type, ...place, name, ...chunk });
    }
    const args = called["arguments"] ?? toolCall["arguments_delta"] ?? "";
    if (typeof args !== "string") return wrong(type, "tool_call.function.arguments");
    const before = this.#startOf(call, place);
    if (type === "response.tool_call.delta") {
      call.arguments += args;
      return whole({ type, ...place, arguments_delta: args, ...chunk }, before);
    }
    return whole({ type, ...place, name, arguments: args === "" ? call.arguments : args, ...chunk }, before);
  }

  /** The call at this place: the known one, or a new one when it has another id. */
  #callAt(index: number, toolCall: JsonObject, name: unknown): Call {
    const { id = toolCall["call_id"], item_id: itemId } = toolCall;
    const known = this.#calls.get(index);
    if (known !== undefined && (!isNonEmptyString(id) || id === known.callId)) {
      if (known.name === "" && isNonEmptyString(name)) known.name = name;
      return known;
    }
    const call = {
      itemId: isNonEmptyString(itemId) ? itemId : `tool-call-0-${index}`,
      callId: isNonEmptyString(id) ? id : `call-0-${index}`,
      name: isNonEmptyString(name) ? name : "",
      arguments: "",
      isStarted: false,
    };
    this.#calls.set(index, call);
    return call;
  }

  #startOf(call: Call, place: Omit<ToolCallStarted, "type" | "name">): ToolCallStarted | undefined {
    if (call.isStarted || call.name === "") return undefined;
    call.isStarted = true;
    return { type: "response.tool_call.started", ...place, name: call.name };
  }
}
