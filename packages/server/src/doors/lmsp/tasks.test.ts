import { createBatchExecutor, systemClock, type TaskContext, type TaskExecutor } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testSha256, textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { beginCall, callDoor } from "../shared/testing/call-door.ts";
import { batchLimits, toBatchLine } from "./batch-lines.ts";
import { createTestDoor } from "./testing/create-test-door.ts";

const door = createTestDoor();

class Pull implements TaskExecutor {
  readonly kind = "model.pull";
  readonly concurrency = 1;
  context: TaskContext | undefined;
  end: (result: unknown) => void = () => {};

  run(_record: unknown, context: TaskContext): Promise<unknown> {
    this.context = context;
    return new Promise((resolve, reject) => {
      this.end = resolve;
      context.signal.addEventListener("abort", () => reject(context.signal.reason));
    });
  }
}

function setUp(tokens: Parameters<typeof createTestCore>[0]["tokens"] = []) {
  const backend = new ScriptedBackend("b", [scriptedModel("m")]);
  const core = createTestCore({ backends: [backend], tokens });
  const pull = new Pull();
  core.tasks.register(pull);
  const { responses, storage } = core;
  core.tasks.register(
    createBatchExecutor({ responses, store: storage.tasks, clock: systemClock, toLine: toBatchLine }),
  );
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    callDoor(door, core, { method, path: `/lmsp/v1${path}`, headers, ...(body === undefined ? {} : { body }) });
  return { backend, core, pull, call };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await turn();
}

describe("tasks", () => {
  it("are accepted, watched, read and forgotten", async () => {
    const { call, core, pull } = setUp();
    const made = await call("POST", "/tasks", { kind: "model.pull", source: "hf:a/b" });
    expect(made.status).toBe(202);
    const task = JSON.parse(made.text);
    expect(task).toMatchObject({ object: "task", kind: "model.pull", attempt: 1, request: { source: "hf:a/b" } });
    expect(made.headers["location"]).toBe(`/lmsp/v1/tasks/${task.id}`);
    const path = `/lmsp/v1/tasks/${task.id}/events`;
    const { responder, done } = beginCall(door, core, { method: "GET", path });
    await until(() => pull.context !== undefined);
    pull.context?.progress({ done: 1, total: 2, unit: "bytes", step: "downloading" });
    pull.end({ model: "a/b" });
    await done;
    const blocks = responder.text.split("\n\n").filter((block) => block !== "");
    expect(blocks.map((block) => block.split("\n").slice(0, 2))).toEqual([
      ["id: 1", "event: task.progress"],
      ["id: 2", "event: task.progress"],
      ["id: 3", "event: task.succeeded"],
    ]);
    expect(JSON.parse(blocks[1]?.split("data: ")[1] ?? "")).toMatchObject({
      type: "task.progress",
      sequence: 2,
      task: { id: task.id, state: "running", progress: { done: 1, total: 2, unit: "bytes", step: "downloading" } },
    });
    for (let after = 0; after < 3; after += 1) {
      const headers: Record<string, string> = after === 0 ? {} : { "last-event-id": String(after) };
      const again = await call("GET", `/tasks/${task.id}/events`, undefined, headers);
      expect(again.text).toBe(`${blocks.slice(after).join("\n\n")}\n\n`);
    }
    expect((await call("GET", `/tasks/${task.id}/events?after=3`)).status).toBe(204);
    const ended = JSON.parse((await call("GET", `/tasks/${task.id}`)).text);
    expect(ended).toMatchObject({ state: "succeeded", result: { model: "a/b" }, finished_at: expect.any(String) });
    const listed = JSON.parse((await call("GET", "/tasks?kind=model.pull&state=succeeded")).text);
    expect(listed).toMatchObject({ data: [{ id: task.id }], next_cursor: null });
    expect((await call("DELETE", `/tasks/${task.id}`)).status).toBe(204);
    expect((await call("GET", `/tasks/${task.id}`)).status).toBe(404);
  });

  it("are cancelled, and the same to say so twice", async () => {
    const { call, pull } = setUp();
    const { id } = JSON.parse((await call("POST", "/tasks", { kind: "model.pull", source: "x" })).text);
    await until(() => pull.context !== undefined);
    await call("POST", `/tasks/${id}/cancel`);
    await until(async () => JSON.parse((await call("GET", `/tasks/${id}`)).text).state === "cancelled");
    const again = JSON.parse((await call("POST", `/tasks/${id}/cancel`)).text);
    expect(again).toMatchObject({ state: "cancelled", problem: { type: "urn:lmsp:problem:cancelled" } });
  });

  it("are one for one Idempotency-Key", async () => {
    const { call } = setUp();
    const headers = { "idempotency-key": "k" };
    const body = { kind: "model.pull", source: "x" };
    const first = JSON.parse((await call("POST", "/tasks", body, headers)).text);
    expect(JSON.parse((await call("POST", "/tasks", body, headers)).text).id).toBe(first.id);
    expect((await call("POST", "/tasks", { ...body, source: "y" }, headers)).status).toBe(422);
  });

  it.each([
    ["no kind", {}, 400, "kind"],
    ["an unknown kind", { kind: "dance" }, 400, "kind"],
    ["a kind that is not offered", { kind: "model.load", model: "m" }, 404, "kind"],
    ["a batch without lines", { kind: "batch", requests: " \n " }, 400, "requests"],
    ["a batch of something else", { kind: "batch", requests: 5 }, 400, "requests"],
    ["a batch of no priority", { kind: "batch", requests: "{}", priority: 9 }, 400, "priority"],
    ["no request", { kind: "response" }, 400, "request"],
  ])("refuse %s", async (_name, body, status, param) => {
    const { call } = setUp();
    const answer = await call("POST", "/tasks", body);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text)).toMatchObject({ param });
  });

  it.each(["-1", "x", "1e3"])("refuse to go on after %s", async (after) => {
    const { call } = setUp();
    const { id } = JSON.parse((await call("POST", "/tasks", { kind: "model.pull", source: "x" })).text);
    expect((await call("GET", `/tasks/${id}/events?after=${after}`)).status).toBe(400);
    expect((await call("GET", `/tasks/${id}/events?after=77`)).status).toBe(400);
  });

  it("of models need the scope for them", async () => {
    const { call } = setUp([{ principal: "ann", sha256: testSha256("secret"), scopes: ["read", "infer"] }]);
    const headers = { authorization: "Bearer secret" };
    expect((await call("POST", "/tasks", { kind: "model.pull", source: "x" }, headers)).status).toBe(403);
    const batch = await call("POST", "/tasks", { kind: "batch", requests: '{"model":"m","input":"a"}' }, headers);
    expect(batch.status).toBe(202);
  });

  it("are told of in the service document", async () => {
    const { core } = setUp();
    const document = await callDoor(door, core, { method: "GET", path: "/.well-known/lmsp" });
    expect(JSON.parse(document.text).features.tasks).toEqual(["response", "model.pull", "batch"]);
  });
});

describe("batches", () => {
  const input = [
    '{"custom_id":"one","request":{"model":"m","input":"a"}}',
    '{"model":"m","input":"b","metadata":{"x":"y"}}',
    "",
    "{nonsense",
    '{"custom_id":"four","request":{"model":7,"input":"c"}}',
    '{"custom_id":"five","request":{"model":"unknown","input":"d"}}\r',
    "[1]",
  ].join("\n");

  async function run(
    post: () => Promise<{ readonly text: string; readonly status: number }>,
    setup: ReturnType<typeof setUp>,
  ) {
    setup.backend.answer = textAnswer(["ok"]);
    const made = await post();
    expect(made.status).toBe(202);
    const { id, request } = JSON.parse(made.text);
    expect(request).toBeUndefined();
    await until(async () => JSON.parse((await setup.call("GET", `/tasks/${id}`)).text).state === "succeeded");
    const output = await setup.call("GET", `/tasks/${id}/output`);
    expect(output.headers["content-type"]).toContain("application/jsonl");
    return output.text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  it.each(["a text", "an upload"])("answer every line in order: %s", async (how) => {
    const setup = setUp();
    const lines = await run(
      () =>
        how === "a text"
          ? setup.call("POST", "/tasks", { kind: "batch", requests: input })
          : setup.call("POST", "/tasks?kind=batch", input, { "content-type": "application/jsonl" }),
      setup,
    );
    expect(lines.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(lines.map((line) => line.custom_id)).toEqual(["one", undefined, undefined, "four", "five", undefined]);
    expect(lines.map((line) => line.problem?.type ?? line.response.output[0].content[0].text)).toEqual([
      "ok",
      "ok",
      "urn:lmsp:problem:invalid-json",
      "urn:lmsp:problem:invalid-request",
      "urn:lmsp:problem:model-not-found",
      "urn:lmsp:problem:invalid-request",
    ]);
    expect(lines[3].problem).toMatchObject({ param: "model" });
  });

  it("take values, too", async () => {
    const setup = setUp();
    const requests = [{ custom_id: "a", request: { model: "m", input: "a" } }, { model: "m", input: "b" }, 5];
    const lines = await run(() => setup.call("POST", "/tasks", { kind: "batch", requests }), setup);
    expect(lines.map((line) => line.problem?.status ?? 200)).toEqual([200, 200, 400]);
  });

  it("refuse too many lines, and a line that is too long by itself", async () => {
    const { call } = setUp();
    const many = await call("POST", "/tasks", { kind: "batch", requests: "{}\n".repeat(batchLimits.lines + 1) });
    expect(JSON.parse(many.text)).toMatchObject({ status: 400, limit: batchLimits.lines });
    const setup = setUp();
    const long = `{"model":"m","input":"${"x".repeat(batchLimits.lineBytes)}"}`;
    const lines = await run(() => setup.call("POST", "/tasks", { kind: "batch", requests: long }), setup);
    expect(lines[0].problem).toMatchObject({
      type: "urn:lmsp:problem:request-too-large",
      limit: batchLimits.lineBytes,
    });
  });

  it("have their output alone", async () => {
    const { call } = setUp();
    const { id } = JSON.parse((await call("POST", "/tasks", { kind: "model.pull", source: "x" })).text);
    expect((await call("GET", `/tasks/${id}/output`)).status).toBe(409);
    expect((await call("POST", "/responses", "{}", { "content-type": "application/jsonl" })).status).toBe(415);
  });
});
