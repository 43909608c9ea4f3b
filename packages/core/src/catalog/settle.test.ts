import { describe, expect, it } from "vitest";
import { type ResponseRequest, requestDefaults } from "../request/request.ts";
import { ScriptedBackend, scriptedModel } from "../testing/scripted-backend.ts";
import { Catalog } from "./catalog.ts";
import { settleRequest } from "./settle.ts";

const request: ResponseRequest = { ...requestDefaults, model: "m", input: { kind: "items", items: [] } };
const modelWith = (changes: Parameters<typeof scriptedModel>[1]) =>
  new Catalog([new ScriptedBackend("b", [scriptedModel("m", changes)])]).resolve("m").model;

describe("settling a request to its model", () => {
  const model = modelWith({
    parameters: {
      typical_p: "refused",
      reasoning_effort: "without_effect",
      temperature: "honoured",
      candidates: "refused",
    },
  });

  it("refuses by name what the model's parameters refuse", () => {
    expect(() => settleRequest({ ...request, sampling: { typicalP: 0.5 } }, model)).toThrow(
      expect.objectContaining({ code: "invalid-request", details: { param: "sampling.typical_p", model: "m" } }),
    );
    expect(() => settleRequest({ ...request, candidates: 2 }, model)).toThrow(/candidates/);
  });

  it("takes a value that asks for nothing, also where it can't be honoured", () => {
    const asked = { ...request, sampling: { typicalP: 1 } };
    expect(settleRequest(asked, model)).toEqual({ request: asked, withoutEffect: [] });
  });

  it("names what has no effect, and only when it was asked for", () => {
    const asked = { ...request, reasoning: { effort: "low" as const }, sampling: { temperature: 1 } };
    expect(settleRequest(asked, model)).toEqual({ request: asked, withoutEffect: ["reasoning.effort"] });
    expect(settleRequest(request, model)).toEqual({ request, withoutEffect: [] });
  });

  it("leaves out tools that the model may use but can't call; required ones stay, to be refused", () => {
    const dumb = modelWith({ capabilities: { ...scriptedModel("m").capabilities, tools: false } });
    const tools = [{ name: "f" }];
    expect(settleRequest({ ...request, tools }, dumb)).toMatchObject({
      request: { tools: [] },
      withoutEffect: ["tools"],
    });
    expect(settleRequest({ ...request, tools, toolChoice: "required" }, dumb).request.tools).toEqual(tools);
    expect(settleRequest({ ...request, tools }, model).request.tools).toEqual(tools);
  });
});
