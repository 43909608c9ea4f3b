import { type BackendEvent, type BackendRequest, CoreError, type TokenLogprob } from "@plenum/core";
import { HeldText, type TakenText } from "../../shared/held-text.ts";
import { ThinkReader } from "../../shared/think-reader.ts";
import { CallReader } from "./call-reader.ts";
import type { OutputParser } from "./chat-format.ts";
import { isForced, type OutputForm, wantsJson } from "./output-plan.ts";
import { hasTools } from "./render-prompt.ts";
import { validateArguments, validateOutput } from "./validate-output.ts";

/** The parser of one candidate's answer: thoughts first, then text and calls. */
export function createParser(request: BackendRequest, candidate: number, form: OutputForm): OutputParser {
  return new AnswerParser(request, candidate, form);
}

class AnswerParser implements OutputParser {
  readonly #request: BackendRequest;
  readonly #candidate: number;
  readonly #held = new HeldText();
  readonly #think: ThinkReader;
  readonly #calls: CallReader | undefined;
  /** The whole text, kept only where it has to be validated. */
  #text: string | undefined;

  constructor(request: BackendRequest, candidate: number, form: OutputForm) {
    this.#request = request;
    this.#candidate = candidate;
    this.#think = new ThinkReader(this.#held, form.think, form.thinkStart);
    this.#text = wantsJson(request) ? "" : undefined;
    if (!hasTools(request)) return;
    this.#calls = new CallReader(this.#held, {
      syntax: form.syntax,
      toolNames: new Set(request.tools.map((tool) => tool.name)),
      candidate,
      isForced: isForced(request),
      maxCalls: request.parallelToolCalls ? Infinity : 1,
      emitText: (taken) => this.#textEvents(taken),
    });
  }

  push(text: string, logprobs?: readonly TokenLogprob[]): BackendEvent[] {
    this.#held.append(text, logprobs);
    return this.#read(false);
  }

  end(finishReason: "stop" | "length", rawFinishReason: string): BackendEvent[] {
    const events = this.#read(true);
    const hasCalls = (this.#calls?.calls.length ?? 0) > 0;
    if (finishReason === "stop") this.#validate(hasCalls);
    events.push({
      type: "finish",
      candidate: this.#candidate,
      finishReason: hasCalls && finishReason === "stop" ? "tool_calls" : finishReason,
      rawFinishReason,
    });
    return events;
  }

  #read(isEnd: boolean): BackendEvent[] {
    const events: BackendEvent[] = [];
    if (!this.#think.isDone) {
      const delta = this.#think.read(isEnd);
      if (delta !== "") events.push({ type: "reasoning", candidate: this.#candidate, delta });
      if (!this.#think.isDone) return events;
    }
    if (this.#calls !== undefined) events.push(...this.#calls.read(isEnd));
    else events.push(...this.#textEvents(this.#held.takeAll()));
    return events;
  }

  #textEvents({ text, logprobs }: TakenText): BackendEvent[] {
    if (text === "" && logprobs.length === 0) return [];
    if (this.#text !== undefined) this.#text += text;
    const candidate = this.#candidate;
    return [{ type: "text", candidate, delta: text, ...(logprobs.length === 0 ? {} : { logprobs }) }];
  }

  #validate(hasCalls: boolean): void {
    if (isForced(this.#request)) this.#validateCalls(hasCalls);
    else if (this.#text !== undefined && !hasCalls) validateOutput(this.#text, this.#request.output.format);
  }

  #validateCalls(hasCalls: boolean): void {
    if (!hasCalls || this.#calls?.isInsideCall === true) {
      throw new CoreError("invalid-output", "The model ended before its call was complete; ask again.");
    }
    for (const call of this.#calls?.calls ?? []) {
      const tool = this.#request.tools.find((each) => each.name === call.name);
      validateArguments(call.name, call.arguments, tool?.parameters);
    }
  }
}
