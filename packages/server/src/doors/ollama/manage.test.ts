import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { expect, test } from "vitest";
import { beginCall, callDoor } from "../shared/testing/call-door.ts";
import { createOllamaDoor } from "./index.ts";
import { setUpRecordedModels } from "./testing/models.ts";

const door = createOllamaDoor({ version: "1.2.3" });

function setUp() {
  const { core, backend } = setUpRecordedModels();
  const send = (method: string, path: string, body: unknown) => callDoor(door, core, { method, path, body });
  return { core, backend, send };
}

test("a pull is a task, and its steps are lines", async () => {
  const { core, send } = setUp();
  const answer = await send("POST", "/api/pull", { model: "hf.co/acme/tiny:Q4_K_M" });
  expect(answer.headers["content-type"]).toBe("application/x-ndjson");
  const lines = answer.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toEqual([
    { status: "pulling manifest" },
    { status: "pulling 4e4e4e4e4e4e", digest: `sha256:${"4e".repeat(32)}`, total: 1000, completed: 600 },
    { status: "success" },
  ]);
  const { data } = await core.storage.tasks.list({ limit: 10 });
  expect(data).toMatchObject([
    { kind: "model.pull", state: "succeeded", request: { source: "hf.co/acme/tiny:Q4_K_M" } },
  ]);
});

test("what the core refuses as a source is an invalid name", async () => {
  const { send } = setUp();
  const answer = await send("POST", "/api/pull", { model: "two words" });
  expect([answer.status, JSON.parse(answer.text)]).toEqual([400, { error: "invalid model name" }]);
});

test("a client that leaves ends its pull", async () => {
  const { core } = setUp();
  const { responder, done } = beginCall(door, core, { method: "POST", path: "/api/pull", body: { model: "endless" } });
  await expect.poll(() => responder.text).toContain("4e4e");
  responder.close();
  await done;
  const { data } = await core.storage.tasks.list({ limit: 10 });
  expect(data).toMatchObject([{ state: "cancelled" }]);
});

test("a copy is a further name; a taken one is refused; deleting it leaves the model", async () => {
  const { core, send } = setUp();
  expect((await send("POST", "/api/copy", { source: "smollm2:135m:latest", destination: "copied" })).status).toBe(200);
  expect((await send("POST", "/api/copy", { source: "tools-model", destination: "smollm2:135m" })).status).toBe(409);
  expect((await send("POST", "/api/show", { model: "copied:latest" })).status).toBe(200);
  const deleted = await send("DELETE", "/api/delete", { name: "copied" });
  expect([deleted.status, deleted.text]).toEqual([200, ""]);
  expect((await send("DELETE", "/api/delete", { model: "copied" })).text).toBe(
    '{"error":"model \'copied\' not found"}',
  );
  expect(core.catalog.find("smollm2:135m")).toBeDefined();
});

test("a runtime that can't delete says so", async () => {
  const { send } = setUp();
  const answer = await send("DELETE", "/api/delete", { model: "smollm2:135m" });
  expect(answer.status).toBe(400);
  expect(JSON.parse(answer.text).error).toContain("can't delete models");
});

test("a model goes where its runtime can", async () => {
  const { core, send } = setUp();
  const removed: string[] = [];
  core.catalog.add(
    Object.assign(new ScriptedBackend("two", [scriptedModel("n")]), {
      delete: async (name: string) => void removed.push(name),
    }),
  );
  expect((await send("DELETE", "/api/delete", { model: "n" })).status).toBe(200);
  expect(removed).toEqual(["n"]);
});
