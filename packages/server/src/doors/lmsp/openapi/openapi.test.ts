import { readFileSync } from "node:fs";
import { createTestCore, ScriptedBackend, scriptedModel, textAnswer } from "@plenum/core/testing";
import { describe, expect, it } from "vitest";
import type { z } from "zod";
import { callDoor, type TestRequest } from "../../shared/testing/call-door.ts";
import { createTestDoor } from "../testing/create-test-door.ts";
import * as answers from "./answers.ts";
import { createOpenapiDocument } from "./index.ts";
import { described } from "./operations.ts";

const door = createTestDoor();

describe("the OpenAPI document", () => {
  it("describes every operation of the door, and no other", () => {
    expect(Object.keys(described).sort()).toEqual(door.operations.map(({ name }) => name).sort());
  });

  it("is the one in docs; `npm run openapi` writes it", () => {
    const committed = readFileSync(new URL("../../../../../../docs/openapi.json", import.meta.url), "utf8");
    expect(JSON.parse(committed)).toEqual(createOpenapiDocument());
  });
});

describe("what is answered is what the document says", () => {
  const backend = new ScriptedBackend("b", [scriptedModel("m")]);
  backend.answer = textAnswer(["one", "two"]);
  const core = createTestCore({ backends: [backend] });
  const get = (path: string): TestRequest => ({ method: "GET", path: `/lmsp/v1${path}` });
  const post = (path: string, body: unknown): TestRequest => ({ method: "POST", path: `/lmsp/v1${path}`, body });
  const asked: readonly (readonly [string, TestRequest, z.ZodType])[] = [
    ["a response", post("/responses", { model: "m", input: "Hi", metadata: { a: "b" } }), answers.response],
    ["responses", get("/responses"), answers.pageOf(answers.response)],
    ["a background response", post("/responses", { model: "m", input: "Hi", background: true }), answers.response],
    ["a task", post("/tasks", { kind: "response", request: { model: "m", input: "Hi" } }), answers.task],
    ["tasks", get("/tasks"), answers.pageOf(answers.task)],
    ["models", get("/models"), answers.pageOf(answers.model)],
    ["a model", get("/models/m"), answers.model],
    ["runtimes", get("/runtimes"), answers.pageOf(answers.runtime)],
    ["nearby services", get("/nearby"), answers.pageOf(answers.nearby)],
    ["principals", get("/principals"), answers.pageOf(answers.principal)],
    ["tokens", get("/tokens"), answers.pageOf(answers.token)],
    ["metrics", get("/metrics"), answers.metrics],
    ["a problem", get("/responses/resp_unknown"), answers.problem],
    ["the service document", { method: "GET", path: "/.well-known/lmsp" }, answers.service],
  ];

  it.each(asked)("%s", async (_what, request, schema) => {
    const { text } = await callDoor(door, core, request);
    expect(schema.safeParse(JSON.parse(text)).error).toBeUndefined();
  });
});
