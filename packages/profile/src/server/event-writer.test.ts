import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { profileError } from "../errors.ts";
import { EventReader } from "../events/read-event.ts";
import { EventOrder } from "../order.ts";
import { deriveRequestId, EventWriter, refusalResult } from "./event-writer.ts";

const place = (index: number) => ({ index, itemId: `tool-call-0-${index}`, callId: `call_${index}` });

type Step = readonly ["text" | "start" | "piece" | "end" | "fail" | "diagnostics" | "chunk", number, string];

const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom("text", "start", "piece", "end", "fail", "diagnostics", "chunk"),
  fc.nat({ max: 4 }),
  fc.string(),
);

/** Plays steps whose call is in the right state, as a door would. */
function play(writer: EventWriter, steps: readonly Step[]): string[] {
  const started = new Set<number>();
  const open = new Set<number>();
  const made: (string | undefined)[] = [];
  for (const [kind, index, text] of steps) {
    const id = place(index).callId;
    if (kind === "text") made.push(writer.textDelta(index, text, "{}"));
    else if (kind === "diagnostics") made.push(writer.diagnostics({ runtime: "r" }));
    else if (kind === "chunk") made.push(writer.openAIChunk("{}"));
    else if (kind === "start") {
      if (started.has(index)) continue;
      started.add(index);
      open.add(index);
      made.push(writer.toolCallStarted(place(index), "f", "{}"));
    } else if (!open.has(index)) continue;
    else if (kind === "piece") made.push(writer.toolCallDelta(id, text));
    else {
      open.delete(index);
      made.push(
        kind === "end" ? writer.toolCallCompleted(id) : writer.toolCallFailed(id, profileError("backend_error", "x")),
      );
    }
  }
  made.push(writer.usage({ inputTokens: 1, outputTokens: 2, totalTokens: 3 }));
  return made.filter((event) => event !== undefined);
}

describe("EventWriter", () => {
  it("makes events that are legal in their order, whatever the end", () => {
    const ends = fc.constantFrom("completed", "failed", "cancelled");
    const flag = fc.boolean();
    fc.assert(
      fc.property(fc.array(step), ends, flag, flag, (steps, end, openaiChunk, diagnostics) => {
        const writer = new EventWriter({ policy: { openaiChunk, diagnostics }, requestId: "req_1" });
        const partials = play(writer, steps);
        const terminal =
          end === "completed"
            ? writer.completed({ id: "x" })
            : end === "failed"
              ? writer.failed(profileError("backend_error", "It failed."))
              : writer.cancelled("peer_cancelled");
        const reader = new EventReader();
        const order = new EventOrder({ isStrict: false });
        const take = (json: string, delivery: "partial" | "terminal"): void => {
          const result = reader.read(json);
          if (result.kind !== "event") throw new Error(JSON.stringify(result));
          expect(order.take(result.event, delivery)).toBeUndefined();
          expect("openai_chunk" in result.event && !openaiChunk).toBe(false);
        };
        for (const json of [...partials, ...terminal.partials]) take(json, "partial");
        take(terminal.event, "terminal");
        expect(order.hasEnded).toBe(true);
        expect(JSON.parse(terminal.event)).toMatchObject({ request_id: "req_1" });
      }),
    );
  });

  it("says usage in both spellings and counts nothing by itself", () => {
    const writer = new EventWriter({ policy: {}, requestId: "r" });
    expect(JSON.parse(writer.usage({ inputTokens: 12, outputTokens: 32, totalTokens: 44 })).usage).toEqual({
      input_tokens: 12,
      output_tokens: 32,
      prompt_tokens: 12,
      completion_tokens: 32,
      total_tokens: 44,
    });
    expect(JSON.parse(writer.usage({ inputTokens: 12 })).usage).toEqual({ input_tokens: 12, prompt_tokens: 12 });
  });

  it("tells of calls that it does not have", () => {
    const writer = new EventWriter({ policy: {}, requestId: "r" });
    expect(() => writer.toolCallDelta("call_0", "x")).toThrow(RangeError);
    writer.toolCallStarted(place(0), "f");
    expect(() => writer.toolCallStarted(place(0), "f")).toThrow(RangeError);
  });

  it("gives errors their status", () => {
    const writer = new EventWriter({ policy: {}, requestId: "r" });
    expect(writer.failed(profileError("unsupported_model", "x")).status).toBe(404);
    expect(writer.failed({ type: "server_error", code: "own", message: "x" }, { status: 507 }).status).toBe(507);
    expect(writer.cancelled("x").status).toBe(499);
    const refusal = refusalResult(profileError("scheduler_rejected", "Full."), "r", { queuePosition: 9 });
    expect(refusal.status).toBe(503);
    expect(JSON.parse(refusal.event)).toEqual({
      type: "response.error",
      error: { type: "server_error", code: "scheduler_rejected", message: "Full." },
      diagnostics: { queue_position: 9 },
      request_id: "r",
    });
  });
});

it("derives ids as the reference adapter does", () => {
  expect(deriveRequestId(901n, 1)).toBe("nnrp-901-1");
});
