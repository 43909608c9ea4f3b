import type { Backend } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testSha256 } from "@plenum/core/testing";
import { expect, test } from "vitest";
import { callDoor } from "../shared/testing/call-door.ts";
import { createTestDoor } from "./testing/create-test-door.ts";

/** Another instance of one service. */
const doorOf = (instance: string) => createTestDoor({ instance });
const door = doorOf("a1");
const path = "/lmsp/v1/models";

function deleting(id: string, models: readonly string[]): Backend & { readonly deleted: string[] } {
  const deleted: string[] = [];
  return Object.assign(
    new ScriptedBackend(
      id,
      models.map((name) => scriptedModel(name)),
    ),
    { deleted, delete: async (name: string) => void deleted.push(name) },
  );
}

test("a model is deleted by a name with slashes and colons, encoded or not", async () => {
  const backend = deleting("one", ["acme/tiny:q4"]);
  const core = createTestCore({ backends: [backend] });
  for (const name of ["acme/tiny:q4", "acme%2Ftiny%3Aq4", "one/acme/tiny:q4"]) {
    const answer = await callDoor(door, core, { method: "DELETE", path: `${path}/${name}` });
    expect([answer.status, answer.text]).toEqual([204, ""]);
  }
  expect(backend.deleted).toEqual(["acme/tiny:q4", "acme/tiny:q4", "acme/tiny:q4"]);
});

test("what can't be deleted is a problem", async () => {
  const core = createTestCore({ backends: [new ScriptedBackend("one", [scriptedModel("m")])] });
  const problem = async (name: string) => {
    const answer = await callDoor(door, core, { method: "DELETE", path: `${path}/${name}` });
    return [answer.status, JSON.parse(answer.text).type];
  };
  expect(await problem("m")).toEqual([404, "urn:lmsp:problem:unsupported-operation"]);
  expect(await problem("none")).toEqual([404, "urn:lmsp:problem:model-not-found"]);
});

test("it needs the scope manage, and a token for the model", async () => {
  const backend = deleting("one", ["mine", "other"]);
  const token = (name: string, scope: "read" | "manage") => ({
    principal: name,
    sha256: testSha256(name),
    scopes: [scope],
    models: ["mine"],
  });
  const core = createTestCore({ backends: [backend], tokens: [token("reader", "read"), token("manager", "manage")] });
  const status = async (bearer: string, name: string) => {
    const headers = { authorization: `Bearer ${bearer}` };
    return (await callDoor(door, core, { method: "DELETE", path: `${path}/${name}`, headers })).status;
  };
  expect(await status("reader", "mine")).toBe(403);
  expect(await status("manager", "other")).toBe(403);
  expect(await status("manager", "mine")).toBe(204);
  expect(backend.deleted).toEqual(["mine"]);
});

test("an entity tag is that of the content: the same on every instance, another for each change", async () => {
  const backend = new ScriptedBackend("one", [scriptedModel("m")]);
  const core = createTestCore({ backends: [backend] });
  const get = (from: typeof door, place: string, tag?: string) =>
    callDoor(from, core, {
      method: "GET",
      path: place,
      ...(tag === undefined ? {} : { headers: { "if-none-match": tag } }),
    });
  for (const place of [path, `${path}/m`]) {
    const { etag = "" } = (await get(door, place)).headers;
    for (const tag of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const again = await get(doorOf("b2"), place, tag);
      expect([again.status, again.text, again.headers["etag"]]).toEqual([304, "", etag]);
    }
    expect((await get(door, place, '"x"')).status).toBe(200);
    backend.setModels([scriptedModel("m", { state: "loading" })]);
    expect((await get(door, place, etag)).status).toBe(200);
    backend.setModels([scriptedModel("m")]);
    expect((await get(door, place, etag)).status).toBe(304);
  }
});
