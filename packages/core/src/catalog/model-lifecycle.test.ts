import { expect, test, vi } from "vitest";
import { ScriptedBackend, scriptedModel } from "../testing/scripted-backend.ts";
import { createTestCore, testCaller } from "../testing/test-core.ts";

function setUp() {
  const digest = "sha256:aa";
  const here = new ScriptedBackend("here", [scriptedModel("m", { aliases: ["alias"], details: { digest } })]);
  const there = new ScriptedBackend("there", [scriptedModel("m-there", { state: "available", details: { digest } })]);
  return { here, there, core: createTestCore({ backends: [here, there] }) };
}

const never = new AbortController().signal;

test("loads where the next response would run, under the runtime's own name", async () => {
  const { core, here, there } = setUp();
  const [load, other] = [vi.spyOn(here, "load"), vi.spyOn(there, "load")];
  await core.models.load("alias", { keepAliveMs: 5 }, testCaller, never);
  expect(load).toHaveBeenCalledWith("m", { keepAliveMs: 5 }, never);
  expect(other).not.toHaveBeenCalled();
});

test("unloads from every runtime", async () => {
  const { core, here, there } = setUp();
  const spies = [vi.spyOn(here, "unload"), vi.spyOn(there, "unload")];
  await core.models.unload("m", testCaller);
  expect(spies.map((spy) => spy.mock.calls)).toEqual([[["m"]], [["m-there"]]]);
});

test("a model that the caller may not use is refused, an unknown one is not found", async () => {
  const { core } = setUp();
  const caller = { ...testCaller, principal: { ...testCaller.principal, models: ["other"] } };
  await expect(core.models.load("m", {}, caller, never)).rejects.toMatchObject({ code: "forbidden" });
  await expect(core.models.unload("m", caller)).rejects.toMatchObject({ code: "forbidden" });
  await expect(core.models.load("x", {}, testCaller, never)).rejects.toMatchObject({ code: "model-not-found" });
});

test("a caller that leaves ends the load as cancelled", async () => {
  const { core, here } = setUp();
  vi.spyOn(here, "load").mockImplementation(
    (_model?: unknown, _options?: unknown, signal?: AbortSignal) =>
      new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
  );
  const abort = new AbortController();
  const loading = core.models.load("m", {}, testCaller, abort.signal);
  abort.abort();
  await expect(loading).rejects.toMatchObject({ code: "cancelled" });
});
