import { describe, expect, it } from "vitest";
import type { JsonObject } from "../json.ts";
import { EventWriter } from "../server/event-writer.ts";
import { adaptResponse } from "../testing/adapt-response.ts";
import { exchange, recordedResponse } from "../testing/fixtures.ts";
import { dataOf, renderSse } from "../testing/render-sse.ts";
import { assembleResponse } from "../testing/sdk.ts";
import { ResponsesSse } from "./responses-sse.ts";

function render(partials: readonly string[], terminal: string): string {
  const request = { requestId: "req_1", model: "m", created: 7, includeUsage: false };
  return renderSse(new ResponsesSse(request), partials, terminal);
}

/** Every event that the official types name, in the order the API has them. */
function isWellFormed(events: readonly JsonObject[]): void {
  expect(events.map((event) => event["sequence_number"])).toEqual(events.map((_event, index) => index));
  expect(events.slice(0, 2).map((event) => event["type"])).toEqual(["response.created", "response.in_progress"]);
  const opened = new Set<unknown>();
  for (const event of events) {
    const place = event["output_index"];
    if (event["type"] === "response.output_item.added") opened.add(place);
    else if (place !== undefined) expect(opened).toContain(place);
    if (event["type"] === "response.output_item.done") opened.delete(place);
  }
  expect(opened.size).toBe(0);
}

describe.each(["text", "tools"])("the recorded response %s", (name) => {
  const { events } = recordedResponse(name);
  const body = events.at(-1)?.["response"] as { output: { type: string; content?: object; arguments?: string }[] };

  function adapted(openaiChunk: boolean): string {
    const { partials, terminal } = adaptResponse(
      new EventWriter({ policy: { openaiChunk }, requestId: "req_1" }),
      events,
    );
    return render([...partials, ...terminal.partials], terminal.event);
  }

  it("comes out as it went in, where events carry its own", () => {
    const sse = adapted(true);
    expect(dataOf(sse)).toEqual(events);
    expect(sse.match(/^event: .*$/gm)).toEqual(events.map((event) => `event: ${event["type"]}`));
  });

  it("is rebuilt to the same answer, where they don't", async () => {
    const sse = adapted(false);
    isWellFormed(dataOf(sse));
    const { final, pieces, types } = await assembleResponse(sse);
    expect(final).toMatchObject({ status: "completed" });
    const [item] = body.output;
    const text = item?.type === "message" ? (item.content as { text: string }[])[0]?.text : item?.arguments;
    expect(pieces).toBe(text);
    expect(types.at(-1)).toBe("response.completed");
    expect(final["id"]).toBe((body as { id?: string }).id);
  });
});

it("is rebuilt from the real peer's exchange", async () => {
  const { steps } = exchange("responses");
  const partials = steps.flatMap((step) => ("partial" in step ? [step.partial] : []));
  const [terminal = ""] = steps.flatMap((step) => ("result" in step ? [step.result] : []));
  const sse = render(partials, terminal);
  isWellFormed(dataOf(sse));
  expect(await assembleResponse(sse)).toMatchObject({ pieces: "Hello", final: { id: "resp_peer_1" } });
});

it("adds what was not streamed: whole items, arguments that came at once", async () => {
  const call = { index: 0, item_id: "fc_1", call_id: "call_1" };
  const partials = [
    JSON.stringify({ type: "response.tool_call.started", ...call, name: "f" }),
    JSON.stringify({ type: "response.tool_call.completed", ...call, name: "f", arguments: "{}" }),
  ];
  const output = [
    { type: "reasoning", id: "rs_1", summary: [] },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{}" },
    { type: "function_call", id: "fc_2", call_id: "call_2", name: "g", arguments: "[]" },
    {
      type: "message",
      id: "msg_1",
      role: "assistant",
      content: [{ type: "output_text", text: "Hi", annotations: [] }],
    },
  ];
  const body = { id: "resp_1", object: "response", status: "incomplete", output };
  const events = dataOf(render(partials, JSON.stringify({ type: "response.completed", body })));
  isWellFormed(events);
  expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: body });
  const deltas = events.filter((event) => String(event["type"]).endsWith(".delta"));
  expect(deltas.map((event) => event["delta"])).toEqual(["{}", "Hi"]);
  const added = events.filter((event) => event["type"] === "response.output_item.added");
  expect(added.map((event) => (event["item"] as JsonObject)["id"])).toEqual(["fc_1", "rs_1", "fc_2", "msg_1"]);
});

describe("an error in the stream", () => {
  const error = { type: "server_error", code: "backend_error", message: "It failed." };

  it("is the service's own event where there is one", () => {
    const own = { type: "response.failed", sequence_number: 0, response: { status: "failed" } };
    const sse = render([], JSON.stringify({ type: "response.error", error, openai_chunk: own }));
    expect(dataOf(sse)).toEqual([own]);
  });

  it("is OpenAI's otherwise, and the SDK throws it", async () => {
    const partial = '{"type":"response.output_text.delta","index":0,"delta":"x"}';
    const sse = render([partial], JSON.stringify({ type: "response.error", error }));
    expect(dataOf(sse).at(-1)).toMatchObject({ type: "error", code: "backend_error", message: "It failed." });
    await expect(assembleResponse(sse)).rejects.toThrow("It failed.");
  });
});
