import { afterEach, expect, it } from "vitest";
import { jsonAnswer } from "../shared/testing/replay-upstream.ts";
import { chunk, routes, run, type Setup, setUp, sseAnswer } from "./testing/fixtures.ts";

let setup: Setup;
afterEach(() => setup.close());

const trace = { traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", tracestate: "a=1,b=2" };

it("a trace goes on in W3C's headers, of chats and of embeddings, and never in a body", async () => {
  setup = await setUp(
    routes({
      "/v1/models": () => jsonAnswer({ data: [{ id: "m-tiny" }] }),
      "/v1/chat/completions": () => sseAnswer([chunk({ content: "ok" }), chunk({}, "stop"), "[DONE]"]),
      "/v1/embeddings": () => jsonAnswer({ data: [{ index: 0, embedding: [1, 0] }], usage: { prompt_tokens: 1 } }),
    }),
  );
  const { backend, upstream } = setup;
  expect((await run(backend, { trace })).text).toBe("ok");
  const request = { model: "m-tiny", inputs: ["a"], truncate: false, priority: 0, runtimeOptions: {}, trace };
  await backend.embed(request, new AbortController().signal);
  await run(backend);
  const asked = upstream.requests.filter(({ path }) => path !== "/v1/models");
  const traced = asked.map(({ headers }) => [
    /^traceparent: (.*)\r?$/im.exec(headers)?.[1],
    /^tracestate: /im.test(headers),
  ]);
  expect(traced).toEqual([
    [trace.traceparent, true],
    [trace.traceparent, true],
    [undefined, false],
  ]);
  expect(JSON.stringify(asked.map(({ body }) => body))).not.toContain("4bf92f");
});
