import { expect, test } from "vitest";
import { runProgram } from "../program.ts";
import { events, type FakeOptions, fakeSurroundings, json, problem } from "../testing/fake-surroundings.ts";

const base = { id: "resp_1", model: "m", door: "lmsp", attempt: 1, created_at: "2026-01-01T00:00:00Z", output: [] };

function ended(status: string, text: string, members: Readonly<Record<string, unknown>> = {}) {
  const content = [{ type: "output_text", text }];
  const output = [{ type: "message", id: "msg_1_0", role: "assistant", candidate: 0, index: 0, status, content }];
  const usage = { input_tokens: 5, output_tokens: 2, total_tokens: 7 };
  const timings = { first_token: 12.4, generation: 40, total: 55 };
  return { type: `response.${status}`, response: { ...base, status, output, usage, timings, ...members } };
}

function answerOf(...list: readonly Readonly<Record<string, unknown>>[]) {
  return [{ type: "response.created", response: { ...base, status: "queued" } }, ...list].map((event, place) =>
    event["type"] === "response.progress" ? event : { ...event, sequence: place + 1, at_ms: place },
  );
}

function text(delta: string) {
  return { type: "response.output_text.delta", item_id: "msg_1_0", index: 0, delta };
}

const document = json({ lmsp_version: "1.0" });
const hello = answerOf(text("Hel"), text("lo"), ended("completed", "Hello"));

function serviceOf(answer: NonNullable<FakeOptions["service"]>[string]): NonNullable<FakeOptions["service"]> {
  return {
    "GET /.well-known/lmsp": document,
    "POST /lmsp/v1/responses": answer,
    "POST /lmsp/v1/responses/resp_1/cancel": json({ ...base, status: "cancelled" }),
  };
}

async function plenum(argv: readonly string[], options: FakeOptions) {
  const around = fakeSurroundings(options);
  const code = await runProgram(["run", ...argv], around);
  return { code, ...around.written, requests: around.requests };
}

test("writes the answer and a newline", async () => {
  const service = serviceOf(events(hello));
  const result = await plenum(["m", "Say", "hello.", "--system", "Be brief.", "--temperature", "0", "--seed", "7"], {
    service,
  });
  expect(result).toMatchObject({ code: 0, output: "Hello\n", errors: "" });
  expect(result.requests[1]?.body).toEqual({
    model: "m",
    input: "Say hello.",
    instructions: "Be brief.",
    sampling: { temperature: 0, seed: 7 },
    stream: true,
  });
});

test("reads the prompt from its input", async () => {
  const service = serviceOf(events(hello));
  expect((await plenum(["m"], { service, input: "from a pipe\n" })).requests[1]?.body).toMatchObject({
    input: "from a pipe",
  });
  expect((await plenum(["m", "-"], { service, input: "dash" })).requests[1]?.body).toMatchObject({ input: "dash" });
});

test("gives the response as JSON", async () => {
  const { code, output } = await plenum(["m", "hi", "--json"], { service: serviceOf(events(hello)) });
  expect(code).toBe(0);
  expect(JSON.parse(output)).toMatchObject({ id: "resp_1", status: "completed", usage: { output_tokens: 2 } });
});

test("tells tokens and times", async () => {
  const { errors } = await plenum(["m", "hi", "--verbose"], { service: serviceOf(events(hello)) });
  expect(errors).toBe("resp_1: 5 tokens in, 2 out, first after 12 ms, 50.0 tokens/s, 55 ms in all\n");
});

test("shows waiting on a terminal, and lets nothing steer it", async () => {
  const list = answerOf(
    { type: "response.progress", kind: "queued", position: 3 },
    { type: "response.progress", kind: "loading" },
    { type: "response.reasoning_text.delta", item_id: "r", index: 0, delta: "hm" },
    text("a\u001b[2Jb\n"),
    ended("completed", ""),
  );
  const sequenced = list.map((event) => event);
  let sequence = 0;
  const renumbered = sequenced.map((event) => ("sequence" in event ? { ...event, sequence: ++sequence } : event));
  const service = serviceOf(events(renumbered));
  const { output, errors } = await plenum(["m", "hi"], { service, isTerminal: true });
  expect(output).toBe("a[2Jb\n");
  expect(errors).toBe(
    "\u001b[2mwaiting, place 3 in the queue …\u001b[22m\r\u001b[2K\u001b[2mloading the model …\u001b[22m\r\u001b[2K\u001b[2mhm\u001b[22m",
  );
});

test("says when the answer was cut off", async () => {
  const list = answerOf(text("Hel"), ended("incomplete", "Hel", { incomplete_reason: "max_tokens" }));
  expect(await plenum(["m", "hi"], { service: serviceOf(events(list)) })).toMatchObject({
    code: 0,
    output: "Hel\n",
    errors: "(cut off by the token limit after 2 tokens)\n",
  });
});

test.each([
  [
    "before it began",
    problem("model-not-found", 404, "There is no model m."),
    "",
    "plenum: There is no model m.\n`plenum models` lists what can be run.\n",
  ],
  [
    "in the middle",
    events(
      answerOf(
        text("Hel"),
        ended("failed", "Hel", {
          problem: { type: "urn:lmsp:problem:backend-error", status: 502, detail: "It crashed." },
        }),
      ),
    ),
    "Hel\n",
    "plenum: It crashed.\n",
  ],
])("a failure %s: exit code 1", async (_name, answer, output, errors) => {
  expect(await plenum(["m", "hi"], { service: serviceOf(answer) })).toMatchObject({ code: 1, output, errors });
});

test("Ctrl-C cancels the response: exit code 130", async () => {
  const around = fakeSurroundings({ service: serviceOf(events(hello.slice(0, 2), true)) });
  const running = runProgram(["run", "m", "hi"], around);
  while (around.written.output === "") await new Promise((resolve) => setTimeout(resolve, 1));
  around.send("SIGINT");
  expect(await running).toBe(130);
  expect(around.written.output).toBe("Hel\n");
  while (around.requests.length < 3) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(around.requests[2]?.line).toBe("POST /lmsp/v1/responses/resp_1/cancel");
});

test("no service at another machine's address: exit code 3", async () => {
  const result = await plenum(["m", "hi", "--url", "http://studio.local:7411"], {});
  expect(result.code).toBe(3);
  expect(result.errors).toContain("No service answers at http://studio.local:7411 (ECONNREFUSED).");
});

test("something else at the address: says so", async () => {
  const service = { "GET /.well-known/lmsp": () => new Response("<html>", { status: 404 }) };
  const result = await plenum(["m", "hi"], { service });
  expect(result).toMatchObject({ code: 1, errors: expect.stringContaining("check --url and PLENUM_URL") });
});

test("chats: keeps the conversation, forgets it on /clear, leaves on /bye", async () => {
  const service = serviceOf(events(hello));
  const lines = ["hi", "", "more", "/clear", "new", "/bye", "never"];
  const { code, output, requests } = await plenum(["m"], { service, lines });
  expect(code).toBe(0);
  expect(output).toBe("Hello\n".repeat(3));
  const hi = { role: "user", content: "hi" };
  expect(requests.slice(1).map(({ body }) => body)).toMatchObject([
    { input: [hi] },
    { input: [hi, { role: "assistant", content: "Hello" }, { role: "user", content: "more" }] },
    { input: [{ role: "user", content: "new" }] },
  ]);
});

test("chats: an error ends the turn, not the conversation", async () => {
  const service = serviceOf(problem("overloaded", 503, "The queue is full."));
  const { code, errors, requests } = await plenum(["m"], { service, lines: ["one", "two"] });
  expect(code).toBe(0);
  expect(errors).toContain("plenum: The queue is full.\nTry again in a moment.\n");
  expect(requests[2]?.body).toMatchObject({ input: [{ role: "user", content: "two" }] });
});

test("chats: Ctrl-C at the prompt leaves with 130", async () => {
  expect((await plenum(["m"], { service: serviceOf(events(hello)), lines: ["hi", "interrupt"] })).code).toBe(130);
});
