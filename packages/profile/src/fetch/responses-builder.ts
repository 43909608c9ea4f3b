import type { PartialEvent, ToolCallStarted } from "../events/event.ts";
import { isJsonObject, type JsonObject } from "../json.ts";
import type { SseRequest } from "./sse.ts";

type NativeEvent = JsonObject & { readonly type: string };

interface OpenMessage {
  readonly id: string;
  readonly outputIndex: number;
  text: string;
}

interface OpenCall {
  readonly itemId: string;
  readonly callId: string;
  readonly name: string;
  readonly outputIndex: number;
  arguments: string;
}

/**
 * Native events of Responses out of the profile's, for services that send no chunks. Items are placed in the order in
 * which they begin, as services differ in what their `index` counts.
 */
export class ResponsesBuilder {
  readonly #request: SseRequest;
  /** Messages by the event's index. */
  readonly #messages = new Map<number, OpenMessage>();
  readonly #calls = new Map<string, OpenCall>();
  /** Calls that were begun, open or not. */
  readonly #callIds = new Set<string>();
  #items = 0;
  #hasBegun = false;

  constructor(request: SseRequest) {
    this.#request = request;
  }

  take(event: PartialEvent): NativeEvent[] {
    switch (event.type) {
      case "response.output_text.delta":
        return [...this.#begin(), ...this.#text(event.index, event.delta)];
      case "response.tool_call.started":
        return [...this.#begin(), ...this.#startCall(event)];
      case "response.tool_call.delta":
        return this.#arguments(event.call_id, event.arguments_delta);
      case "response.tool_call.completed":
        return this.#endCall(event.call_id, event.arguments, "completed");
      case "response.tool_call.error":
        return this.#endCall(event.call_id, undefined, "incomplete");
      default:
        return [];
    }
  }

  /** What is still open or was never streamed; the last event is the caller's. */
  end(body: JsonObject): NativeEvent[] {
    const events = this.#begin();
    const callIds = [...this.#calls.keys()];
    const messages = [...this.#messages.values()];
    for (const message of messages) events.push(...this.#endMessage(message));
    for (const id of callIds) events.push(...this.#endCall(id, undefined, "completed"));
    let passed = 0;
    for (const item of Array.isArray(body["output"]) ? body["output"].filter(isJsonObject) : []) {
      const isStreamed =
        item["type"] === "message" ? passed < messages.length : this.#callIds.has(String(item["call_id"]));
      if (item["type"] === "message") passed += 1;
      if (!isStreamed) events.push(...this.#wholeItem(item));
    }
    return events;
  }

  #begin(): NativeEvent[] {
    if (this.#hasBegun) return [];
    this.#hasBegun = true;
    const { requestId, created, model } = this.#request;
    const response = {
      id: `resp_${requestId}`,
      object: "response",
      created_at: created,
      status: "in_progress",
      model,
      error: null,
      incomplete_details: null,
      output: [],
      usage: null,
    };
    return [
      { type: "response.created", response },
      { type: "response.in_progress", response },
    ];
  }

  #text(index: number, delta: string): NativeEvent[] {
    const known = this.#messages.get(index);
    const message = known ?? { id: this.#nextId("msg"), outputIndex: this.#nextPlace(), text: "" };
    this.#messages.set(index, message);
    message.text += delta;
    const place = placeOf(message);
    const event = { type: "response.output_text.delta", ...place, delta, logprobs: [] };
    if (known !== undefined) return [event];
    return [
      { type: "response.output_item.added", output_index: message.outputIndex, item: messageItem(message.id) },
      { type: "response.content_part.added", ...place, part: textPart("") },
      event,
    ];
  }

  #endMessage(message: OpenMessage): NativeEvent[] {
    const { id, outputIndex, text } = message;
    const place = placeOf(message);
    return [
      { type: "response.output_text.done", ...place, text, logprobs: [] },
      { type: "response.content_part.done", ...place, part: textPart(text) },
      { type: "response.output_item.done", output_index: outputIndex, item: messageItem(id, text) },
    ];
  }

  #startCall({ call_id: callId, item_id: itemId, name }: ToolCallStarted): NativeEvent[] {
    const call = { itemId, callId, name, outputIndex: this.#nextPlace(), arguments: "" };
    this.#calls.set(callId, call);
    this.#callIds.add(callId);
    return [
      { type: "response.output_item.added", output_index: call.outputIndex, item: callItem(call, "in_progress") },
    ];
  }

  #arguments(callId: string, delta: string): NativeEvent[] {
    const call = this.#calls.get(callId);
    if (call === undefined) return [];
    call.arguments += delta;
    const { itemId: item_id, outputIndex: output_index } = call;
    return [{ type: "response.function_call_arguments.delta", item_id, output_index, delta }];
  }

  #endCall(callId: string, whole: string | undefined, status: string): NativeEvent[] {
    const call = this.#calls.get(callId);
    if (call === undefined) return [];
    this.#calls.delete(callId);
    const missing = whole !== undefined && call.arguments === "" && whole !== "" ? this.#late(call, whole) : [];
    const { itemId: item_id, outputIndex: output_index, name } = call;
    return [
      ...missing,
      {
        type: "response.function_call_arguments.done",
        item_id,
        output_index,
        name,
        arguments: call.arguments,
      },
      { type: "response.output_item.done", output_index, item: callItem(call, status) },
    ];
  }

  /** Arguments that came only with the end of their call. */
  #late(call: OpenCall, delta: string): NativeEvent[] {
    call.arguments = delta;
    const { itemId: item_id, outputIndex: output_index } = call;
    return [{ type: "response.function_call_arguments.delta", item_id, output_index, delta }];
  }

  #wholeItem(item: JsonObject): NativeEvent[] {
    const output_index = this.#nextPlace();
    const item_id = typeof item["id"] === "string" ? item["id"] : this.#nextId("item");
    const isMessage = item["type"] === "message" && Array.isArray(item["content"]);
    const parts = isMessage ? (item["content"] as unknown[]).filter(isJsonObject) : [];
    const opened = isMessage ? { ...item, status: "in_progress", content: [] } : item;
    return [
      { type: "response.output_item.added", output_index, item: opened },
      ...parts.flatMap((part, content_index) => wholePart({ item_id, output_index, content_index }, part)),
      { type: "response.output_item.done", output_index, item },
    ];
  }

  #nextPlace(): number {
    this.#items += 1;
    return this.#items - 1;
  }

  #nextId(kind: string): string {
    return `${kind}_${this.#request.requestId}_${this.#items}`;
  }
}

function placeOf({ id, outputIndex }: OpenMessage) {
  return { item_id: id, output_index: outputIndex, content_index: 0 };
}

function textPart(text: string): JsonObject {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function messageItem(id: string, text?: string): JsonObject {
  const status = text === undefined ? "in_progress" : "completed";
  return { id, type: "message", role: "assistant", status, content: text === undefined ? [] : [textPart(text)] };
}

function callItem({ itemId: id, callId: call_id, name, arguments: args }: OpenCall, status: string): JsonObject {
  return { id, type: "function_call", status, call_id, name, arguments: args };
}

function wholePart(place: object, part: JsonObject): NativeEvent[] {
  const { text } = part;
  const isText = part["type"] === "output_text" && typeof text === "string";
  return [
    { type: "response.content_part.added", ...place, part: isText ? { ...part, text: "" } : part },
    ...(isText
      ? [
          { type: "response.output_text.delta", ...place, delta: text, logprobs: [] },
          { type: "response.output_text.done", ...place, text, logprobs: [] },
        ]
      : []),
    { type: "response.content_part.done", ...place, part },
  ];
}
