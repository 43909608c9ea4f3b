import type { Core } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testSha256, textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import { beginCall, callDoor } from "../../shared/testing/call-door.ts";
import type { MemoryResponder } from "../../shared/testing/memory-responder.ts";
import { createTestDoor } from "../testing/create-test-door.ts";

const door = createTestDoor();

interface Told {
  readonly type: string;
  readonly models?: readonly { readonly id: string }[];
  readonly model?: { readonly id: string; readonly state: string };
  readonly response?: { readonly id: string; readonly status: string; readonly output?: unknown };
  readonly response_id?: string;
  readonly event?: { readonly type: string; readonly sequence: number };
}

const toldBy = ({ text }: MemoryResponder): Told[] =>
  text
    .split("\n\n")
    .filter((block) => block.startsWith("event: "))
    .map((block) => JSON.parse(block.split("data: ")[1] ?? ""));

function setUp() {
  const backend = new ScriptedBackend("b", [scriptedModel("m")]);
  backend.answer = textAnswer(["one", "two"]);
  return { backend, core: createTestCore({ backends: [backend] }) };
}

const watch = (core: Core, query = "", token?: string) =>
  beginCall(door, core, {
    method: "GET",
    path: `/lmsp/v1/events${query}`,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
  });

const create = (core: Core, token?: string) =>
  callDoor(door, core, {
    method: "POST",
    path: "/lmsp/v1/responses",
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    body: { model: "m", input: "Hi" },
  });

describe("service events", () => {
  it("begin with a snapshot and go on with changes, merged, without the text of answers", async () => {
    const { core, backend } = setUp();
    const { responder, done } = watch(core);
    await expect.poll(() => toldBy(responder)).toHaveLength(1);
    expect(toldBy(responder)[0]).toMatchObject({ type: "snapshot", models: [{ id: "m" }], responses: [], tasks: [] });
    const { id } = JSON.parse((await create(core)).text);
    backend.setModels([scriptedModel("m"), scriptedModel("new")]);
    await expect.poll(() => toldBy(responder).map(({ type }) => type)).toContain("model.added");
    const changes = toldBy(responder).filter(({ type }) => type === "response.changed");
    expect(changes.at(-1)?.response).toMatchObject({ id, status: "completed" });
    // Created, started and ended within one telling.
    expect(changes.length).toBeLessThanOrEqual(2);
    expect(responder.text).not.toContain("one");
    responder.close();
    await done;
    expect(core.responses.active).toBe(0);
  });

  it("tell of tasks, a background response among them", async () => {
    const { core } = setUp();
    const { responder, done } = watch(core, "?topics=tasks");
    await expect.poll(() => toldBy(responder)).toHaveLength(1);
    const body = { model: "m", input: "Hi", background: true };
    const made = await callDoor(door, core, { method: "POST", path: "/lmsp/v1/responses", body });
    const { id } = JSON.parse(made.text);
    await expect
      .poll(() => toldBy(responder).at(-1))
      .toMatchObject({ type: "task.changed", task: { id, state: "succeeded" } });
    responder.close();
    await done;
  });

  it("carry the events of watched responses, each from its own place", async () => {
    const { core } = setUp();
    const { id } = JSON.parse((await create(core)).text);
    const { responder, done } = watch(core, `?topics=responses&watch=${id}:3`);
    await expect.poll(() => toldBy(responder).some(({ event }) => event?.type === "response.completed")).toBe(true);
    const events = toldBy(responder).filter(({ type }) => type === "response.event");
    expect(events.map(({ response_id }) => response_id)).toEqual(events.map(() => id));
    expect(events.map(({ event }) => event?.sequence)).toEqual(events.map((_, index) => index + 4));
    responder.close();
    await done;
  });

  it("cost a client that takes nothing no more than the things there are", async () => {
    const { core } = setUp();
    const { responder, done } = watch(core, "?topics=responses");
    await expect.poll(() => toldBy(responder)).toHaveLength(1);
    responder.isFull = true;
    const first = JSON.parse((await create(core)).text).id;
    await expect.poll(() => toldBy(responder).some(({ response }) => response?.id === first)).toBe(true);
    const before = responder.writes.length;
    for (let index = 0; index < 20; index += 1) await create(core);
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(responder.writes.length).toBe(before);
    responder.drain();
    await expect.poll(() => toldBy(responder).filter(({ type }) => type === "response.changed").length).toBe(21);
    responder.close();
    await done;
  });

  it("tell a caller of nothing that is not theirs", async () => {
    const backend = new ScriptedBackend("b", [scriptedModel("m"), scriptedModel("secret")]);
    backend.answer = textAnswer(["x"]);
    const core = createTestCore({
      backends: [backend],
      tokens: [
        { principal: "ann", sha256: testSha256("a"), scopes: ["read", "infer"], models: ["m"] },
        { principal: "bob", sha256: testSha256("b"), scopes: ["read", "infer"] },
        { principal: "ops", sha256: testSha256("o"), scopes: ["admin"] },
      ],
    });
    const ann = watch(core, "", "a");
    const ops = watch(core, "", "o");
    await expect.poll(() => toldBy(ops.responder)).toHaveLength(1);
    const { id } = JSON.parse((await create(core, "b")).text);
    await expect.poll(() => toldBy(ops.responder).some(({ response }) => response?.id === id)).toBe(true);
    expect(toldBy(ann.responder)).toHaveLength(1);
    expect(toldBy(ann.responder)[0]?.models).toEqual([expect.objectContaining({ id: "m" })]);
    expect(toldBy(ann.responder)[0]).not.toHaveProperty("runtimes");
    for (const { responder, done } of [ann, ops]) {
      responder.close();
      await done;
    }
  });

  it("end when the service has stopped, after what ran has ended", async () => {
    const { core } = setUp();
    const { responder, done } = watch(core);
    await expect.poll(() => toldBy(responder)).toHaveLength(1);
    await create(core);
    await core.close(1_000);
    await done;
    expect(responder.hasEnded).toBe(true);
  });

  it.each([
    ["?topics=weather", "topics", 400],
    ["?watch=resp_x:many", "watch", 400],
    ["?watch=resp_unknown:1", "id", 404],
  ])("refuse %s", async (query, param, status) => {
    const { core } = setUp();
    const { responder, done } = watch(core, query);
    await done;
    expect(responder.status).toBe(status);
    expect(JSON.parse(responder.text)).toMatchObject({ param });
  });
});

describe("metrics", () => {
  it.each(["?window=2h&step=1m", "?window=5m", ""])("answer %s", async (query) => {
    const { core } = setUp();
    const { status, text } = await callDoor(door, core, { method: "GET", path: `/lmsp/v1/metrics${query}` });
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ step_ms: expect.any(Number), series: [], queue: [] });
  });

  it.each(["?window=yes", "?step=0s", "?step=5"])("refuse %s", async (query) => {
    const { core } = setUp();
    const { status } = await callDoor(door, core, { method: "GET", path: `/lmsp/v1/metrics${query}` });
    expect(status).toBe(400);
  });
});
