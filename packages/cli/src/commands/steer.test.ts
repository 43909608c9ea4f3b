import { expect, test } from "vitest";
import { runProgram } from "../program.ts";
import { events, type FakeOptions, fakeSurroundings, json, problem } from "../testing/fake-surroundings.ts";

const created = new Date(Date.now() - 125_000).toISOString();
const base = { model: "m", door: "ollama", attempt: 1, priority: 2, created_at: created };
const content = [{ type: "output_text", text: "Hello" }];
const output = [
  { type: "message", id: "msg_1_0", role: "assistant", candidate: 0, index: 0, status: "completed", content },
];
const done = { ...base, id: "resp_1", status: "completed", output, usage: { input_tokens: 5, output_tokens: 2 } };
const running = { ...base, id: "resp_2", status: "in_progress", output: [] };
const task = { id: "task_1", kind: "model.pull", state: "running", attempt: 1, created_at: created };
const pulled = { ...task, state: "succeeded", result: { models: ["new:1b"] } };
const progress = { done: 1048576, total: 4194304, unit: "bytes", step: "new.gguf" };

const taskEvents = events([
  { type: "task.progress", sequence: 1, at_ms: 1, task: { ...task, progress } },
  { type: "task.succeeded", sequence: 2, at_ms: 2, task: pulled },
]);

async function plenum(argv: string, service: NonNullable<FakeOptions["service"]>, input?: string) {
  const around = fakeSurroundings({ service, ...(input !== undefined && { input }) });
  const code = await runProgram(argv.split(" "), around);
  return { code, ...around.written, requests: around.requests };
}

const page = (...data: readonly object[]) => json({ data, next_cursor: null });

test("responses: listed, shown, changed, cancelled, deleted", async () => {
  const service = {
    "GET /lmsp/v1/responses": page(running, done),
    "GET /lmsp/v1/responses/resp_1": json(done),
    "PATCH /lmsp/v1/responses/resp_2": json({ ...running, priority: 5 }),
    "POST /lmsp/v1/responses/resp_2/cancel": json({ ...running, status: "cancelled" }),
    "DELETE /lmsp/v1/responses/resp_1": () => new Response(null, { status: 204 }),
  };
  const list = await plenum("responses list --status in_progress", service);
  expect(list.output.split("\n").slice(1, 3)).toEqual([
    "resp_2    in_progress  m      ollama  2         -       -     2 min",
    "resp_1    completed    m      ollama  2         5+2     -     2 min",
  ]);
  expect((await plenum("responses get resp_1", service)).output).toBe("Hello\n");
  const changed = await plenum("responses change resp_2 --priority 5 --timeout-ms 1000", service);
  expect(changed.requests[0]?.body).toEqual({ priority: 5, timeout_ms: 1000 });
  expect((await plenum("responses cancel resp_2", service)).output).toContain("cancelled");
  expect((await plenum("responses delete resp_1 --json", service)).output).toContain('"resp_1"');
});

test("ps shows what is loaded and what runs", async () => {
  const loaded = { id: "m", state: "loaded", runtimes: [{ id: "embedded", memory_bytes: 5 * 1024 ** 2 }] };
  const service = {
    "GET /lmsp/v1/models": page(loaded, { id: "idle", state: "available", runtimes: [] }),
    "GET /lmsp/v1/responses": page(running),
  };
  const { output: written } = await plenum("ps", service);
  expect(written).toContain("m      loaded  5 MiB   embedded");
  expect(written).not.toContain("idle");
  expect(written).toContain("resp_2");
});

test("watch writes a whole answer of any door, and takes it up after a number", async () => {
  const answer = [
    { type: "response.created", sequence: 1, at_ms: 0, response: running },
    { type: "response.output_text.delta", sequence: 2, at_ms: 1, item_id: "msg_1_0", index: 0, delta: "Hello" },
    { type: "response.completed", sequence: 3, at_ms: 2, response: done },
  ];
  const service = { "GET /lmsp/v1/responses/resp_1/events": events(answer) };
  expect(await plenum("watch resp_1", service)).toMatchObject({ code: 0, output: "Hello\n" });
  const lines = (await plenum("watch resp_1 --json --after 2", service)).output.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).sequence)).toEqual([3]);
});

test("watch without an id tells what happens", async () => {
  const stream = events([
    { type: "snapshot", models: [{ id: "m" }], responses: [running] },
    { type: "response.changed", response: done },
  ]);
  let calls = 0;
  const service = {
    "GET /lmsp/v1/events": (request: { readonly signal: AbortSignal | undefined }) => {
      calls += 1;
      return calls === 1 ? stream(request) : problem("unauthorized", 401, "Send a token.")();
    },
  };
  const { output: written, code } = await plenum("watch", service);
  expect(code).toBe(1);
  expect(written).toContain("1 models, 0 runtimes, 1 answers running");
  expect(written).toContain("resp_1  ollama  m  completed  2 tokens");
});

test("pull shows progress and names the model at its end", async () => {
  const service = { "POST /lmsp/v1/tasks": json(task, 202), "GET /lmsp/v1/tasks/task_1/events": taskEvents };
  const result = await plenum("pull hf:a/b:Q4 --sha256 00", service);
  expect(result).toMatchObject({ code: 0, output: "new:1b is here.\n", errors: "new.gguf: 25 % of 4 MiB\n" });
  expect(result.requests[0]?.body).toEqual({ kind: "model.pull", source: "hf:a/b:Q4", sha256: "00" });
  expect((await plenum("pull hf:a/b --detach", service)).output).toBe("task_1\n");
});

test("a task that fails says why", async () => {
  const failure = {
    type: "urn:lmsp:problem:insufficient-storage",
    status: 507,
    detail: "3 GiB are needed, 1 GiB is free.",
  };
  const failed = events([
    { type: "task.failed", sequence: 1, at_ms: 1, task: { ...task, state: "failed", problem: failure } },
  ]);
  const service = { "POST /lmsp/v1/tasks": json(task, 202), "GET /lmsp/v1/tasks/task_1/events": failed };
  const { code, errors } = await plenum("pull hf:a/b", service);
  expect(code).toBe(1);
  expect(errors).toContain("3 GiB are needed, 1 GiB is free.");
});

test("a batch from the input: its answers in order", async () => {
  const batch = { ...task, kind: "batch" };
  const end = events([{ type: "task.succeeded", sequence: 1, at_ms: 1, task: { ...batch, state: "succeeded" } }]);
  const service = {
    "POST /lmsp/v1/tasks": json(batch, 202),
    "GET /lmsp/v1/tasks/task_1/events": end,
    "GET /lmsp/v1/tasks/task_1/output": () => new Response('{"index":0}\n{"index":1}\n'),
  };
  const result = await plenum("tasks batch -", service, '{"model":"m","input":"a"}\n');
  expect(result).toMatchObject({ code: 0, output: '{"index":0}\n{"index":1}\n' });
  expect(result.requests[0]?.body).toEqual({ kind: "batch", requests: '{"model":"m","input":"a"}\n' });
});

test("a background answer leaves its id", async () => {
  const service = { "POST /lmsp/v1/responses": json(running, 202) };
  const result = await plenum("run m hi --background", service);
  expect(result.output).toBe("resp_2\n");
  expect(result.requests[0]?.body).toMatchObject({ background: true, stream: false });
});

test("a background answer is left to no service that would end with the command", async () => {
  const around = fakeSurroundings();
  expect(await runProgram(["run", "m", "hi", "--background"], around)).toBe(3);
  expect(around.written.output).toBe("");
  expect(around.written.errors).toContain("plenum serve");
});

test.each(["bash", "zsh", "fish"])("completion for %s knows every command", async (shell) => {
  const { output: script } = await plenum(`completion ${shell}`, {});
  for (const word of ["serve", "responses", "tasks", "watch"]) expect(script).toContain(word);
  expect(script).toContain(shell === "fish" ? "-l verbose" : "--verbose");
});
