import { CoreError, type ProblemCode, problemCodes, problems } from "@plenum/core";
import { DropReason } from "@plenum/nnrp";
import { describe, expect, it } from "vitest";
import { errorTable } from "./errors.ts";
import { chat, read, setUp } from "./testing/set-up.ts";

/** What a runtime or the core can end a response with. */
const native: Partial<Record<ProblemCode, object>> = {
  cancelled: { terminal: { type: "response.cancelled" } },
  superseded: { end: { type: "dropped", reason: DropReason.superseded } },
  interrupted: { end: { type: "dropped", reason: DropReason.transportClosed } },
};

describe.each([true, false])("a response that fails, streamed: %s", (stream) => {
  it.each(problemCodes)("%s", async (code) => {
    const bench = setUp();
    bench.backend.answer = function* () {
      yield [
        { type: "accepted", inputTokens: 1 },
        { type: "text", candidate: 0, delta: "so" },
      ];
      throw new CoreError(code, "It went wrong.", { param: "sampling.top_p", retryAfterMs: 2000, backendStatus: 422 });
    };
    const session = await bench.session();
    const { partials, terminal, end, others } = await read(session.submit({ body: chat({ stream }) }));
    expect(partials.map(({ type }) => type)).toEqual(stream ? ["response.output_text.delta"] : []);
    const instead = native[code];
    if (instead !== undefined) {
      expect({ terminal, end }).toMatchObject(instead);
      return;
    }
    const row = errorTable[code];
    const status = row.status === "backend" ? 422 : row.status;
    expect(end).toMatchObject({ type: "result", status });
    expect(terminal).toMatchObject({
      type: "response.error",
      error: { type: row.type, code: row.code, message: "It went wrong.", param: "top_p" },
    });
    expect(others).toContainEqual(expect.objectContaining({ type: "retry-after", retryAfterMs: 2000 }));
    const isRetryable = problems[code].retry === "later";
    expect(terminal?.["diagnostics"]).toEqual(
      isRetryable ? expect.objectContaining({ retry_reason: code, retry_after_ms: 2000 }) : undefined,
    );
  });
});

it("a full queue: RETRY_AFTER, and how many wait", async () => {
  const bench = setUp({ parallel: 1, limits: { queued: 0 } });
  bench.backend.answer = async function* (_request, signal) {
    yield [{ type: "accepted", inputTokens: 1 }];
    await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  };
  const session = await bench.session();
  const running = session.submit({ body: chat() });
  while (bench.backend.running === 0) await new Promise((resolve) => setImmediate(resolve));
  const { terminal, others } = await read(session.submit({ body: chat() }));
  expect(others).toMatchObject([{ type: "retry-after", retryAfterMs: 1000 }]);
  expect(terminal).toMatchObject({
    error: { type: "server_error", code: "backend_overload" },
    diagnostics: { retry_reason: "overloaded", retry_after_ms: 1000, queue_position: 0, transport: "memory" },
  });
  running.cancel();
});

it("what nobody foresaw is an internal error, told without its cause", async () => {
  const bench = setUp();
  bench.backend.answer = () => {
    throw new TypeError("secret");
  };
  const session = await bench.session();
  const { terminal } = await read(session.submit({ body: chat() }));
  expect(terminal).toMatchObject({ error: { code: "internal_error" } });
  expect(JSON.stringify(terminal)).not.toContain("secret");
});
