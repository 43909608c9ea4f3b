import type { ProfileEvent, ToolCallCompleted } from "../events/event.ts";
import type { JsonObject } from "../json.ts";
import { choiceOfItemId } from "../tool-call-item-id.ts";

/** Puts a chat's answer together from its events, for services that end without a body of their own. */
export class ChatAssembler {
  readonly #texts = new Map<number, string>();
  readonly #calls: ToolCallCompleted[] = [];
  #usage: JsonObject | undefined;

  take(event: ProfileEvent): void {
    if (event.type === "response.output_text.delta") {
      this.#texts.set(event.index, (this.#texts.get(event.index) ?? "") + event.delta);
    } else if (event.type === "response.tool_call.completed") this.#calls.push(event);
    else if (event.type === "response.usage") this.#usage = event.usage;
  }

  /** A `chat.completion`. Its finish reasons are guesses: `tool_calls` where there are calls, else `stop`. */
  body(id: string, model: string): JsonObject {
    const choices = new Set([...this.#texts.keys(), ...this.#calls.map((call) => choiceOfItemId(call.item_id))]);
    return {
      id,
      object: "chat.completion",
      model,
      choices: [...choices].sort((a, b) => a - b).map((index) => this.#choice(index)),
      ...(this.#usage && { usage: this.#usage }),
    };
  }

  #choice(index: number): JsonObject {
    const calls = this.#calls.filter((call) => choiceOfItemId(call.item_id) === index);
    const toolCalls = calls.map(({ call_id: id, name, arguments: args }) => ({
      id,
      type: "function",
      function: { name, arguments: args },
    }));
    return {
      index,
      message: {
        role: "assistant",
        content: this.#texts.get(index) ?? null,
        ...(calls.length > 0 && { tool_calls: toolCalls }),
      },
      finish_reason: calls.length > 0 ? "tool_calls" : "stop",
    };
  }
}
