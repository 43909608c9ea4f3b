import { isTerminalEvent, type ProfileEvent, type ToolCallEvent, type ToolCallStarted } from "./events/event.ts";

/** How an event came: as PARTIAL_RESULT, or as the RESULT_PUSH that ends the operation. */
export type Delivery = "partial" | "terminal";

export const orderFaults = {
  after_terminal: "An event follows the terminal one.",
  terminal_as_partial: "A terminal event came as PARTIAL_RESULT.",
  partial_as_terminal: "RESULT_PUSH carries an event that is not terminal.",
  call_started_twice: "A tool call was started twice.",
  call_not_started: "A tool call goes on that was not started.",
  call_after_end: "A tool call goes on after its end.",
  call_left_open: "A tool call is still open at response.completed.",
  call_renamed: "A tool call ends under another name.",
  arguments_differ: "The arguments of a tool call are not the sum of their pieces.",
  output_after_usage: "Output follows response.usage.",
  usage_twice: "response.usage came twice.",
} as const;

export type OrderFaultCode = keyof typeof orderFaults;

export interface OrderFault {
  readonly code: OrderFaultCode;
  readonly message: string;
  readonly callId?: string;
}

export interface EventOrderOptions {
  /**
   * Whether usage must come once and after the output. Servers exist that send running totals, and no reader is harmed by
   * them.
   * @default false
   */
  readonly isStrict?: boolean;
}

interface CallState {
  readonly name: string;
  arguments: string;
  isOpen: boolean;
  mayStayOpen: boolean;
}

/** The legal order of one operation's events (wire description §12.2, §12.3; the contract's `ordering`). */
export class EventOrder {
  readonly #isStrict: boolean;
  readonly #calls = new Map<string, CallState>();
  #openCalls = 0;
  #hasUsage = false;
  #hasEnded = false;

  constructor({ isStrict = false }: EventOrderOptions = {}) {
    this.#isStrict = isStrict;
  }

  /** Whether the terminal event has come. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Takes the next event. @returns what is wrong with its place; a wrong event leaves the state as it was. */
  take(event: ProfileEvent, delivery: Delivery): OrderFault | undefined {
    if (this.#hasEnded) return fault("after_terminal");
    if (isTerminalEvent(event)) {
      if (delivery === "partial") return fault("terminal_as_partial");
      if (event.type === "response.completed" && this.#openCalls > 0) return fault("call_left_open", this.#openCall());
      this.#hasEnded = true;
      return undefined;
    }
    if (delivery === "terminal") return fault("partial_as_terminal");
    switch (event.type) {
      case "response.output_text.delta":
        return this.#isLate() ? fault("output_after_usage") : undefined;
      case "response.usage":
        if (this.#isLate()) return fault("usage_twice");
        this.#hasUsage = true;
        return undefined;
      case "response.diagnostics":
      case "response.openai_chunk":
        return undefined;
      default:
        return this.#takeCall(event);
    }
  }

  /** A start that the peer left out (`EventResult.before`): such a call need not be ended either. */
  takeImplicit(event: ToolCallStarted): OrderFault | undefined {
    const wrong = this.take(event, "partial");
    const call = this.#calls.get(event.call_id);
    if (wrong !== undefined || call === undefined) return wrong;
    call.mayStayOpen = true;
    this.#openCalls -= 1;
    return undefined;
  }

  #isLate(): boolean {
    return this.#isStrict && this.#hasUsage;
  }

  #takeCall(event: ToolCallEvent): OrderFault | undefined {
    const { call_id: id } = event;
    const call = this.#calls.get(id);
    if (this.#isLate()) return fault("output_after_usage", id);
    if (event.type === "response.tool_call.started") {
      if (call !== undefined) return fault("call_started_twice", id);
      this.#calls.set(id, { name: event.name, arguments: "", isOpen: true, mayStayOpen: false });
      this.#openCalls += 1;
      return undefined;
    }
    if (call === undefined) return fault("call_not_started", id);
    if (!call.isOpen) return fault("call_after_end", id);
    if (event.type === "response.tool_call.delta") {
      call.arguments += event.arguments_delta;
      return undefined;
    }
    if (event.type === "response.tool_call.completed") {
      if (event.name !== call.name) return fault("call_renamed", id);
      // Calls that come in one piece have no deltas.
      if (call.arguments !== "" && event.arguments !== call.arguments) return fault("arguments_differ", id);
    }
    call.isOpen = false;
    if (!call.mayStayOpen) this.#openCalls -= 1;
    return undefined;
  }

  #openCall(): string | undefined {
    for (const [id, { isOpen, mayStayOpen }] of this.#calls) if (isOpen && !mayStayOpen) return id;
    return undefined;
  }
}

function fault(code: OrderFaultCode, callId?: string): OrderFault {
  const message = orderFaults[code];
  return callId === undefined ? { code, message } : { code, message, callId };
}
