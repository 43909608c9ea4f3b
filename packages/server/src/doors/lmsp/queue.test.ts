import { createTestCore, ManualClock, ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { expect, it } from "vitest";
import { beginCall, type TestRequest } from "../shared/testing/call-door.ts";
import { createTestDoor } from "./testing/create-test-door.ts";

const door = createTestDoor();

const post: TestRequest = {
  method: "POST",
  path: "/lmsp/v1/responses",
  body: { model: "m", input: "Hi", stream: true },
};

/** A model that runs one response at a time, each until it is told to end. */
function setUp() {
  const clock = new ManualClock();
  const backend = new ScriptedBackend("b", [scriptedModel("m", { limits: { parallel: 1 } })]);
  const ends: (() => void)[] = [];
  backend.answer = async function* () {
    yield [{ type: "accepted" }];
    await new Promise<void>((resolve) => ends.push(resolve));
    yield [
      { type: "text", candidate: 0, delta: "x" },
      { type: "finish", candidate: 0, finishReason: "stop" },
    ];
  };
  return { core: createTestCore({ backends: [backend], clock }), backend, clock, ends };
}

const progressIn = (text: string): unknown[] =>
  text
    .split("\n\n")
    .filter((event) => event.startsWith("event: response.progress"))
    .map((event) => JSON.parse(event.split("data: ")[1] ?? ""));

it("a stream that waits is told its place and the wait that is expected there, from the start on", async () => {
  const { core, backend, clock, ends } = setUp();
  const first = beginCall(door, core, post);
  await expect.poll(() => backend.running).toBe(1);
  const second = beginCall(door, core, post);
  const third = beginCall(door, core, post);
  await expect.poll(() => core.scheduler.queued).toBe(2);
  // Its headers leave after a second without an event.
  await expect.poll(() => clock.pending).toBeGreaterThan(4);
  clock.advance(1_000);
  expect(progressIn(third.responder.text)).toEqual([{ type: "response.progress", kind: "queued", position: 2 }]);
  clock.advance(3_000);
  ends.shift()?.();
  await first.done;
  await expect
    .poll(() => progressIn(third.responder.text))
    .toEqual([
      { type: "response.progress", kind: "queued", position: 2 },
      { type: "response.progress", kind: "queued", position: 1, expected_wait_ms: 4_000 },
    ]);
  await expect.poll(() => ends.length).toBe(1);
  ends.shift()?.();
  await second.done;
  await expect.poll(() => ends.length).toBe(1);
  ends.shift()?.();
  await third.done;
  expect(third.responder.text).toContain("event: response.completed");
});
