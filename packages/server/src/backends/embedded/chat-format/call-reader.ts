import type { BackendEvent } from "@plenum/core";
import { type HeldText, heldBack, type TakenText } from "../../shared/held-text.ts";
import { parseObject } from "./call-arguments.ts";
import { JsonScanner, type ScannedMember } from "./json-scanner.ts";
import type { ToolSyntax } from "./tool-syntax.ts";

export interface CallReaderOptions {
  readonly syntax: ToolSyntax;
  readonly toolNames: ReadonlySet<string>;
  readonly candidate: number;
  /** True: the grammar lets nothing but calls come, so a call is given out while it is being written. */
  readonly isForced: boolean;
  /** Calls given out; further ones are dropped. */
  readonly maxCalls: number;
  /** Gives out text of the answer. */
  readonly emitText: (taken: TakenText) => BackendEvent[];
}

/** A call that has been found. */
export interface FoundCall {
  readonly name: string;
  readonly arguments: string;
}

const memberNames: ReadonlySet<string> = new Set(["name", "arguments", "parameters", "type", "id"]);

type State = "text" | "call" | "after" | "only-text";

/**
 * Finds calls in an answer. Only what may be a call is held back; what turns out to be none is given out as text, whole.
 * Unless calls are forced, a call is given out when it is complete, since nothing can be taken back.
 */
export class CallReader {
  readonly calls: FoundCall[] = [];
  readonly #options: CallReaderOptions;
  readonly #held: HeldText;
  #state: State;
  #scanner = new JsonScanner();
  /** Units of the held text that were looked at as marker or call. */
  #seen = 0;
  /** Units of the held text up to the end of the call's marker. */
  #markerEnd = 0;
  #hasText = false;
  /** Calls whose name is out; forced calls only. */
  #begun: { readonly name: string; given: number } | undefined;
  #isInList = false;

  constructor(held: HeldText, options: CallReaderOptions) {
    this.#held = held;
    this.#options = options;
    this.#state = options.syntax.markerIsOptional ? "after" : "text";
  }

  /** Whether a forced call has been begun and not ended. */
  get isInsideCall(): boolean {
    return this.#begun !== undefined;
  }

  /** Reads on in the held text. @param isEnd true: nothing follows */
  read(isEnd: boolean): BackendEvent[] {
    const events: BackendEvent[] = [];
    for (let before = ""; before !== this.#progress(); ) {
      before = this.#progress();
      events.push(...this.#step(isEnd));
    }
    if (isEnd) events.push(...this.#flush());
    return events;
  }

  #progress(): string {
    return `${this.#state} ${this.#held.text.length} ${this.#seen} ${this.calls.length} ${this.#isInList}`;
  }

  #step(isEnd: boolean): BackendEvent[] {
    switch (this.#state) {
      case "only-text":
        return this.#give(this.#held.text.length);
      case "text":
        return this.#inText(isEnd);
      case "after":
        return this.#betweenCalls(isEnd);
      case "call":
        return this.#inCall();
    }
  }

  #inText(isEnd: boolean): BackendEvent[] {
    const { marker } = this.#options.syntax;
    const { text } = this.#held;
    const at = text.indexOf(marker);
    if (at >= 0) {
      const isSpace = text.slice(0, at).trim() === "" && this.#maySkipSpace();
      this.#beginCall((isSpace ? at : 0) + marker.length);
      return isSpace ? [] : this.#give(at);
    }
    const free = isEnd ? text.length : text.length - heldBack(text, [marker]);
    // White space around calls is no answer; whether a call follows is not known yet.
    if (text.slice(0, free).trim() === "" && this.#maySkipSpace()) return [];
    return this.#give(free);
  }

  #maySkipSpace(): boolean {
    return !this.#hasText || this.calls.length > 0;
  }

  /** Where a call may stand without a marker, or behind another call. */
  #betweenCalls(isEnd: boolean): BackendEvent[] {
    const { syntax } = this.#options;
    const { text } = this.#held;
    const start = text.length - text.trimStart().length;
    const rest = text.slice(start);
    const separators = this.calls.length === 0 ? [] : this.#separators();
    const found = separators.find((each) => rest.startsWith(each));
    if (found !== undefined) return this.#drop(start + found.length);
    if (this.#isInList && rest.startsWith("]")) {
      this.#isInList = false;
      return this.#drop(start + 1);
    }
    if (rest.startsWith("{") && (this.#isInList || syntax.markerIsOptional)) {
      this.#beginCall(start);
      return [];
    }
    if (syntax.markerIsOptional && rest.startsWith(syntax.marker)) {
      this.#beginCall(start + syntax.marker.length);
      return [];
    }
    const mayFollow = [...separators, syntax.marker].some((each) => each.startsWith(rest));
    if (mayFollow && !isEnd) return [];
    this.#isInList = false;
    this.#state = syntax.markerIsOptional ? "only-text" : "text";
    return [];
  }

  #separators(): readonly string[] {
    const { end, markerIsOptional } = this.#options.syntax;
    if (this.#isInList) return [","];
    return markerIsOptional ? [";"] : end === undefined ? [] : [end];
  }

  #beginCall(markerEnd: number): void {
    this.#state = "call";
    this.#scanner = new JsonScanner();
    this.#markerEnd = markerEnd;
    this.#seen = markerEnd;
    this.#begun = undefined;
  }

  #inCall(): BackendEvent[] {
    const { text } = this.#held;
    if (this.#scanner.text === "") this.#skipToJson();
    const next = text.charAt(this.#seen);
    if (next === "") return [];
    if (this.#scanner.text === "" && next !== "{") return this.#notACall();
    this.#seen += this.#scanner.push(text.slice(this.#seen));
    if (this.#scanner.status === "bad" || this.#isForeign()) return this.#notACall();
    const events = this.#options.isForced ? this.#giveForced() : [];
    if (this.#scanner.status !== "done") return events;
    return [...events, ...this.#endCall()];
  }

  /** White space, and the list's bracket, between the marker and the JSON. */
  #skipToJson(): void {
    const { text } = this.#held;
    const rest = text.slice(this.#seen);
    this.#seen += rest.length - rest.trimStart().length;
    if (this.#options.syntax.isList && !this.#isInList && text.charAt(this.#seen) === "[") {
      this.#isInList = true;
      this.#seen += 1;
      this.#skipToJson();
    }
  }

  /** JSON, but no call: an unknown tool, or another object where no marker told that a call comes. */
  #isForeign(): boolean {
    const { members } = this.#scanner;
    const name = members.get("name");
    if (name?.to !== undefined && !this.#options.toolNames.has(this.#nameOf(name))) return true;
    return this.#options.syntax.markerIsOptional && [...members.keys()].some((key) => !memberNames.has(key));
  }

  #nameOf(member: ScannedMember): string {
    const value: unknown = JSON.parse(this.#scanner.text.slice(member.from, member.to));
    return typeof value === "string" ? value : "";
  }

  #endCall(): BackendEvent[] {
    const call = this.#completeCall();
    if (call === undefined) return this.#notACall();
    const isOut = this.#begun !== undefined;
    this.#drop(this.#seen);
    this.#state = "after";
    this.#begun = undefined;
    if (this.calls.length >= this.#options.maxCalls) return [];
    this.calls.push(call);
    if (isOut) return [];
    const number = this.calls.length - 1;
    const { candidate } = this.#options;
    return [
      { type: "function_call", candidate, call: number, name: call.name },
      { type: "function_call_arguments", candidate, call: number, delta: call.arguments },
    ];
  }

  /** The call as it stands in the text; its arguments are cut out, not written again. */
  #completeCall(): FoundCall | undefined {
    const { members, text } = this.#scanner;
    const name = members.get("name");
    if (name === undefined) return undefined;
    const given = members.get("arguments") ?? members.get("parameters");
    if (given === undefined) {
      return this.#options.syntax.markerIsOptional ? undefined : { name: this.#nameOf(name), arguments: "{}" };
    }
    const raw = text.slice(given.from, given.to);
    // Some models put the arguments' JSON into a string.
    const inner: unknown = raw.startsWith('"') ? JSON.parse(raw) : raw;
    const isObject = typeof inner === "string" && parseObject(inner) !== undefined;
    return isObject ? { name: this.#nameOf(name), arguments: inner } : undefined;
  }

  /** While a forced call is being written: its name, then its arguments piece by piece. */
  #giveForced(): BackendEvent[] {
    const { members, text } = this.#scanner;
    const { candidate, maxCalls, syntax } = this.#options;
    const name = members.get("name");
    const given = members.get(syntax.argumentsKey);
    if (name?.to === undefined || this.calls.length >= maxCalls) return [];
    const call = this.calls.length;
    const events: BackendEvent[] = [];
    if (this.#begun === undefined) {
      this.#begun = { name: this.#nameOf(name), given: 0 };
      events.push({ type: "function_call", candidate, call, name: this.#begun.name });
    }
    if (given === undefined) return events;
    const delta = text.slice(given.from + this.#begun.given, given.to);
    this.#begun.given += delta.length;
    if (delta !== "") events.push({ type: "function_call_arguments", candidate, call, delta });
    return events;
  }

  #notACall(): BackendEvent[] {
    const { syntax } = this.#options;
    this.#isInList = false;
    this.#begun = undefined;
    if (syntax.markerIsOptional) {
      this.#state = "only-text";
      return [];
    }
    this.#state = "text";
    // What follows the marker may hold another one.
    return this.#give(this.#markerEnd);
  }

  #flush(): BackendEvent[] {
    if (this.#begun !== undefined) return [];
    const rest = this.#held.text;
    if (rest.trim() === "" && this.calls.length > 0) return this.#drop(rest.length);
    return this.#give(rest.length);
  }

  #give(length: number): BackendEvent[] {
    if (length === 0) return [];
    this.#hasText = true;
    return this.#options.emitText(this.#held.take(length));
  }

  #drop(length: number): [] {
    this.#held.take(length);
    return [];
  }
}
