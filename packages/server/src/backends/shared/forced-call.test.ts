import { type BackendEvent, type BackendRequest, type FunctionTool, requestDefaults } from "@plenum/core";
import { describe, expect, it } from "vitest";
import { forcedCall } from "./forced-call.ts";

const weather: FunctionTool = {
  name: "get_weather",
  description: "Current weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const now: FunctionTool = { name: "now" };

function requestOf(changes: Partial<BackendRequest>): BackendRequest {
  const items = [{ type: "message", role: "user", content: [{ type: "text", text: "Hi" }] }] as const;
  return { ...requestDefaults, model: "m", input: { kind: "items", items }, tools: [weather, now], ...changes };
}

const schemaOf = (changes: Partial<BackendRequest>): unknown => {
  const { format } = forcedCall(requestOf(changes))?.request.output ?? {};
  return format?.type === "json_schema" ? format.schema : undefined;
};

describe("the request", () => {
  const weatherCall = {
    type: "object",
    properties: { name: { type: "string", const: "get_weather" }, arguments: weather.parameters },
    required: ["name", "arguments"],
    additionalProperties: false,
  };
  const nowCall = {
    ...weatherCall,
    properties: { name: { type: "string", const: "now" }, arguments: { type: "object" } },
  };

  it("of a named call has its schema, and the tool in the system text alone", () => {
    const request = forcedCall(requestOf({ toolChoice: { name: "get_weather" } }))?.request;
    expect(request).toMatchObject({ tools: [], toolChoice: "auto" });
    expect(request?.instructions).toMatch(/^Call this function now:\n\{"name":"get_weather".*\nAnswer with JSON/);
    expect(schemaOf({ toolChoice: { name: "get_weather" } })).toEqual(weatherCall);
  });

  it("of any call has the schemas of all, behind the client's instructions", () => {
    const changes = { toolChoice: "required", instructions: "Be brief." } as const;
    expect(forcedCall(requestOf(changes))?.request.instructions).toMatch(/^Be brief\.\n\nCall one/);
    expect(schemaOf(changes)).toEqual({ anyOf: [weatherCall, nowCall] });
  });

  it.each(["auto", "none"] as const)("of the choice %s stays", (toolChoice) => {
    expect(forcedCall(requestOf({ toolChoice }))).toBeUndefined();
  });

  it("has definitions of the tools' schemas at its root", () => {
    const parameters = {
      properties: { at: { $ref: "#/$defs/place" }, more: { items: { $ref: "#/definitions/old" } } },
      $defs: { place: { properties: { near: { $ref: "#/$defs/place" } } } },
      definitions: { old: { type: "string" } },
    };
    expect(schemaOf({ tools: [{ name: "go", parameters }], toolChoice: "required" })).toMatchObject({
      properties: {
        arguments: {
          properties: { at: { $ref: "#/$defs/tool0_place" }, more: { items: { $ref: "#/$defs/tool0_old" } } },
        },
      },
      $defs: { tool0_place: { properties: { near: { $ref: "#/$defs/tool0_place" } } }, tool0_old: { type: "string" } },
    });
  });

  it("of a tool whose schema refers to its root is refused by name", () => {
    const tools = [{ name: "a", parameters: { properties: { b: { $ref: "#" } } } }];
    expect(() => forcedCall(requestOf({ tools, toolChoice: "required" }))).toThrow(
      expect.objectContaining({ code: "invalid-request", details: expect.objectContaining({ param: "tools" }) }),
    );
  });
});

describe("the answer", () => {
  const written = '{ "name": "get_weather", "arguments": {"city": "Paris", "id": 12345678901234567890} }';
  const text = (delta: string, candidate = 0): BackendEvent => ({ type: "text", candidate, delta });
  const finish = (finishReason: "stop" | "length" | "tool_calls", candidate = 0): BackendEvent => ({
    type: "finish",
    candidate,
    finishReason,
  });

  function read(...batches: readonly (readonly BackendEvent[])[]): readonly BackendEvent[] {
    const events: BackendEvent[] = [];
    const sink = forcedCall(requestOf({ toolChoice: "required" }))?.sinkBefore((batch) => events.push(...batch));
    for (const batch of batches) sink?.(batch);
    return events;
  }

  it("is read as the call, with exact numbers", () => {
    const accepted = { type: "accepted" } as const;
    expect(read([accepted], [text(written.slice(0, 20))], [text(written.slice(20)), finish("stop")])).toEqual([
      accepted,
      { type: "function_call", candidate: 0, call: 0, name: "get_weather" },
      {
        type: "function_call_arguments",
        candidate: 0,
        call: 0,
        delta: '{"city":"Paris","id":12345678901234567890}',
      },
      finish("tool_calls"),
    ]);
  });

  it("is read apart for each candidate", () => {
    const other = '{"name":"now","arguments":{}}';
    const events = read([text(written), text(other, 1)], [finish("stop", 1), finish("stop")]);
    expect(events.flatMap((event) => (event.type === "function_call" ? [[event.candidate, event.name]] : []))).toEqual([
      [1, "now"],
      [0, "get_weather"],
    ]);
  });

  it("ends with length when it was cut", () => {
    expect(read([text(written.slice(0, 30)), finish("length")])).toEqual([finish("length")]);
  });

  it("may be a call that the server makes by itself", () => {
    const call = { type: "function_call", candidate: 0, call: 0, name: "now" } as const;
    expect(read([text("Well, "), call, finish("tool_calls")])).toEqual([call, finish("tool_calls")]);
  });

  it.each([
    ["text", "It is sunny."],
    ["another tool", '{"name":"x","arguments":{}}'],
    ["broken JSON", '{"name":"get_weather","arguments":{,}}'],
    ["nothing", ""],
  ])("that is no call is invalid output: %s", (_name, delta) => {
    expect(() => read([text(delta), finish("stop")])).toThrow(expect.objectContaining({ code: "invalid-output" }));
  });

  it("without end is refused", () => {
    const long = text("x".repeat(1024 * 1024));
    expect(() => read(...Array.from({ length: 5 }, () => [long]))).toThrow(
      expect.objectContaining({ code: "backend-error" }),
    );
  });
});
