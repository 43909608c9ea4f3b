import { type BackendEvent, CoreError } from "@plenum/core";
import { isLoose, type Loose, textOr } from "./loose.ts";

interface Call {
  /** The server's id; empty when it has none. */
  readonly id: string;
  name: string;
  arguments: string;
  /** Number in the candidate, once it was begun. */
  number: number | undefined;
}

/**
 * Tool calls of one candidate, from deltas as servers send them. What the contract says: the first delta of a call has
 * `index`, `id` and `name`, later ones `index` and a piece of the arguments. What is seen as well: no index, the same
 * index for every call, no id, an empty or repeated one, name and id on every delta, arguments as an object.
 */
export class ToolCalls {
  readonly #candidate: number;
  readonly #allowsMany: boolean;
  readonly #calls: Call[] = [];
  readonly #byIndex = new Map<string, Call>();
  readonly #callIds = new Set<string>();
  #last: Call | undefined;
  #begun = 0;

  /** @param allowsMany false: calls behind the first are dropped, since the client asked for one at a time */
  constructor(candidate: number, allowsMany: boolean) {
    this.#candidate = candidate;
    this.#allowsMany = allowsMany;
  }

  /** Whether a call was made. */
  get hasCalls(): boolean {
    return this.#begun > 0;
  }

  /** @param writeObject exact JSON text of arguments that came as an object */
  take(delta: Loose, events: BackendEvent[], writeObject: (value: unknown) => string): void {
    const { index, id, function: called } = delta;
    const { name, arguments: given } = isLoose(called) ? called : delta;
    const piece = isLoose(given) ? writeObject(given) : textOr(given);
    const call = this.#callOf({ index, id: textOr(id), name: textOr(name), piece });
    this.#last = call;
    if (call.name === "") call.name = textOr(name);
    if (call.number === undefined) this.#begin(call, piece, events);
    else if (piece !== "") this.#push(call, piece, events);
  }

  /** @throws CoreError backend-error for a call that never got a name */
  end(): void {
    if (this.#calls.some(({ name }) => name === "")) {
      throw new CoreError("backend-error", "The runtime called a function without its name.");
    }
  }

  #begin(call: Call, piece: string, events: BackendEvent[]): void {
    call.arguments += piece;
    if (call.name === "") return;
    if (this.#begun > 0 && !this.#allowsMany) return;
    const candidate = this.#candidate;
    call.number = this.#begun;
    this.#begun += 1;
    const isOwnId = call.id !== "" && !this.#callIds.has(call.id);
    if (isOwnId) this.#callIds.add(call.id);
    const callId = isOwnId ? { callId: call.id } : {};
    events.push({ type: "function_call", candidate, call: call.number, name: call.name, ...callId });
    if (call.arguments !== "") this.#emit(call.number, call.arguments, events);
  }

  #push(call: Call, piece: string, events: BackendEvent[]): void {
    call.arguments += piece;
    if (call.number !== undefined) this.#emit(call.number, piece, events);
  }

  #emit(call: number, delta: string, events: BackendEvent[]): void {
    events.push({ type: "function_call_arguments", candidate: this.#candidate, call, delta });
  }

  /** The call that a delta belongs to; a new one when it begins one. */
  #callOf(delta: { index: unknown; id: string; name: string; piece: string }): Call {
    const { id, name } = delta;
    const key = typeof delta.index === "number" || typeof delta.index === "string" ? String(delta.index) : undefined;
    const current = key === undefined ? this.#withoutIndex(id) : this.#byIndex.get(key);
    if (current !== undefined && !this.#beginsAnother(current, delta)) return current;
    // The same index again with an id that is known: that call goes on.
    const known = current === undefined || id === "" ? undefined : this.#calls.find((call) => call.id === id);
    const call = known ?? { id, name, arguments: "", number: undefined };
    if (known === undefined) this.#calls.push(call);
    if (key !== undefined) this.#byIndex.set(key, call);
    return call;
  }

  #withoutIndex(id: string): Call | undefined {
    if (id === "") return this.#last;
    const known = this.#calls.find((call) => call.id === id);
    // An id of its own begins a call, unless the one before still waits for its name.
    return known ?? (this.#last?.id === "" && this.#last.name === "" ? this.#last : undefined);
  }

  /** Whether a delta for this call's index, or without one, begins another call. */
  #beginsAnother(current: Call, { id, name, piece }: { id: string; name: string; piece: string }): boolean {
    if (name === "") return false;
    if (current.name === "") return false;
    if (id !== "" && current.id !== "" && id !== current.id) return name !== current.name || isWhole(current.arguments);
    if (id !== "" && id === current.id) return false;
    if (name !== current.name) return true;
    return piece !== "" && isWhole(current.arguments);
  }
}

/** The arguments are a JSON object that has ended. A call without arguments has none to wait for. */
function isWhole(text: string): boolean {
  if (text.trim() === "") return true;
  try {
    return isLoose(JSON.parse(text));
  } catch {
    // Still being written.
    return false;
  }
}
