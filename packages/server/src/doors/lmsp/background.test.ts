import { createTestCore, ManualClock, ScriptedBackend, scriptedModel, textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { beginCall, callDoor } from "../shared/testing/call-door.ts";
import { createTestDoor } from "./testing/create-test-door.ts";

const door = createTestDoor();

const body = { model: "m", input: "Hi" };

function setUp() {
  const clock = new ManualClock();
  const backend = new ScriptedBackend("b", [scriptedModel("m")]);
  const core = createTestCore({ backends: [backend], clock });
  const call = (method: string, path: string, sent?: unknown, headers: Record<string, string> = {}) =>
    callDoor(door, core, { method, path: `/lmsp/v1${path}`, headers, ...(sent === undefined ? {} : { body: sent }) });
  return { clock, backend, core, call };
}

/** Runs until it is aborted. */
async function* stuck(_request: unknown, signal: AbortSignal) {
  yield [{ type: "accepted" } as const, { type: "text", candidate: 0, delta: "a" } as const];
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("background responses", () => {
  it.each([
    ["background", { ...body, background: true }, {}, undefined],
    ["Prefer: respond-async", body, { prefer: "respond-async" }, "respond-async"],
    [
      "both, among other preferences",
      { ...body, background: true },
      { prefer: "handling=strict, respond-async; wait=0" },
      "respond-async",
    ],
  ])("are accepted by %s", async (_name, sent, headers, applied) => {
    const { backend, call } = setUp();
    backend.answer = stuck;
    const answer = await call("POST", "/responses", sent, headers);
    expect(answer.status).toBe(202);
    const response = JSON.parse(answer.text);
    expect(response).toMatchObject({ object: "response", background: true });
    expect(answer.headers).toMatchObject({
      location: `/lmsp/v1/responses/${response.id}`,
      "x-lmsp-response-id": response.id,
    });
    expect(answer.headers["preference-applied"]).toBe(applied);
    const task = JSON.parse((await call("GET", `/tasks/${response.id}`)).text);
    expect(task).toMatchObject({ id: response.id, kind: "response", state: "running", request: { model: "m" } });
  });

  it("say no to the preference where the body does", async () => {
    const { call } = setUp();
    const answer = await call("POST", "/responses", { ...body, background: false }, { prefer: "respond-async" });
    expect(answer.status).toBe(200);
    expect(answer.headers["preference-applied"]).toBeUndefined();
    expect(JSON.parse(answer.text).background).toBeUndefined();
  });

  it("are waited for as long as the client would", async () => {
    const { backend, call, core, clock } = setUp();
    const done = await call("POST", "/responses", body, { prefer: "respond-async, wait=5" });
    expect(done.status).toBe(200);
    expect(JSON.parse(done.text)).toMatchObject({ status: "completed" });
    backend.answer = () => {
      throw new Error("no");
    };
    const failed = await call("POST", "/responses", body, { prefer: "respond-async, wait=5" });
    expect(failed.status).toBe(200);
    expect(JSON.parse(failed.text)).toMatchObject({ status: "failed" });
    backend.answer = stuck;
    const { responder, done: answered } = beginCall(door, core, {
      method: "POST",
      path: "/lmsp/v1/responses",
      headers: { prefer: "respond-async, wait=5" },
      body,
    });
    for (let turns = 0; turns < 5; turns += 1) await turn();
    expect(responder.hasStarted).toBe(false);
    clock.advance(5_000);
    await answered;
    expect(responder.status).toBe(202);
  });

  it("stream their events, from the start and again, without an owner", async () => {
    const { backend, call, core, clock } = setUp();
    backend.answer = stuck;
    const { responder } = beginCall(door, core, {
      method: "POST",
      path: "/lmsp/v1/responses",
      body: { ...body, background: true, stream: true },
    });
    while (!responder.text.includes("delta")) await turn();
    expect(responder.status).toBe(200);
    const { location = "" } = responder.headers;
    responder.close();
    clock.advance(600_000);
    expect(JSON.parse((await call("GET", location.replace("/lmsp/v1", ""))).text)).toMatchObject({
      status: "in_progress",
    });
    const id = location.split("/").at(-1);
    await call("POST", `/tasks/${id}/cancel`);
    const again = await call("GET", `/tasks/${id}/events`);
    expect(again.text.startsWith(responder.text)).toBe(true);
    expect(again.text).toContain("event: response.cancelled");
  });

  it("are one task for one Idempotency-Key", async () => {
    const { call, backend } = setUp();
    const headers = { prefer: "respond-async", "idempotency-key": "k" };
    const first = await call("POST", "/responses", body, headers);
    const second = await call("POST", "/responses", body, headers);
    expect(JSON.parse(second.text).id).toBe(JSON.parse(first.text).id);
    await turn();
    expect(backend.requests).toHaveLength(1);
  });

  it("may be made as tasks", async () => {
    const { call, backend } = setUp();
    backend.answer = textAnswer(["done"]);
    const made = await call("POST", "/tasks", { kind: "response", request: body });
    expect(made.status).toBe(202);
    const { id, kind } = JSON.parse(made.text);
    expect(kind).toBe("response");
    expect(made.headers["location"]).toBe(`/lmsp/v1/tasks/${id}`);
    await turn();
    expect(JSON.parse((await call("GET", `/responses/${id}`)).text)).toMatchObject({ status: "completed" });
    const wrong = await call("POST", "/tasks", { kind: "response", request: { ...body, model: 1 } });
    expect(JSON.parse(wrong.text)).toMatchObject({ status: 400, param: "request.model" });
    const foreground = JSON.parse((await call("POST", "/responses", body)).text);
    expect((await call("GET", `/tasks/${foreground.id}`)).status).toBe(404);
  });
});
