import { expect, test, vi } from "vitest";
import { requestDefaults } from "../request/request.ts";
import { ScriptedBackend, scriptedModel, textAnswer } from "../testing/scripted-backend.ts";
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

test("a model goes from every runtime that serves it, or from the one that is named", async () => {
  const { core, here, there } = setUp();
  const deleted: string[] = [];
  for (const backend of [here, there]) {
    Object.assign(backend, { delete: async (name: string) => void deleted.push(`${backend.id}/${name}`) });
  }
  await core.models.delete("there/m-there", testCaller);
  expect(deleted).toEqual(["there/m-there"]);
  await core.models.delete("alias", testCaller);
  expect(deleted.slice(1)).toEqual(["here/m", "there/m-there"]);
});

test("a runtime that can't delete is named, and nothing is deleted", async () => {
  const { core, here } = setUp();
  let deletions = 0;
  Object.assign(here, { delete: async () => void deletions++ });
  await expect(core.models.delete("m", testCaller)).rejects.toMatchObject({
    code: "unsupported-operation",
    detail: "The runtime 'there' (scripted) can't delete models; delete 'm' there.",
  });
  expect(deletions).toBe(0);
});

test("a model that a response uses is not deleted", async () => {
  const { core, here, there } = setUp();
  for (const backend of [here, there]) Object.assign(backend, { delete: async () => undefined });
  let finish = (): void => {};
  const gate = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const whole = textAnswer(["x"]);
  here.answer = async function* (request, signal) {
    await gate;
    yield* whole(request, signal);
  };
  const request = { ...requestDefaults, model: "m", input: { kind: "completion", prompt: "x", raw: true } } as const;
  const owned = await core.responses.create(request, testCaller, "lmsp");
  await expect(core.models.delete("m", testCaller)).rejects.toMatchObject({
    code: "conflict",
    details: { model: "m" },
  });
  finish();
  await owned.done;
  await core.models.delete("m", testCaller);
});

test("an alias leads to its model, outlives a restart, and goes without it", async () => {
  const { core, here } = setUp();
  let deletions = 0;
  Object.assign(here, { delete: async () => void deletions++ });
  await core.models.alias("mine", "alias", testCaller);
  expect(core.catalog.resolve("mine").model.aliases).toContain("mine");
  const restarted = createTestCore({ backends: [here], storage: core.storage });
  await restarted.models.loadAliases();
  expect(restarted.catalog.resolve("mine").model.id).toBe("m");
  await restarted.models.delete("mine", testCaller);
  expect(restarted.catalog.find("mine")).toBeUndefined();
  expect(deletions).toBe(0);
  await core.models.loadAliases();
  expect(core.catalog.find("mine")).toBeUndefined();
});

test.each([
  ["", "invalid-request"],
  ["two words", "invalid-request"],
  ["x".repeat(257), "invalid-request"],
  ["m", "conflict"],
  ["here/m", "conflict"],
  ["configured", "conflict"],
])("the alias %j is refused", async (alias, code) => {
  const { here } = setUp();
  const core = createTestCore({ backends: [here], names: { aliases: new Map([["configured", "m"]]) } });
  await expect(core.models.alias(alias, "m", testCaller)).rejects.toMatchObject({ code, details: { param: "alias" } });
  await expect(core.models.delete("configured", testCaller)).rejects.toMatchObject({ code: "conflict" });
});
