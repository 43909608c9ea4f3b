import { type BackendRequest, type FunctionTool, type InputItem, requestDefaults } from "@plenum/core";

export function user(text: string): InputItem {
  return { type: "message", role: "user", content: [{ type: "text", text }] };
}

export function chat(changes: Partial<BackendRequest> = {}): BackendRequest {
  return { ...requestDefaults, model: "m", input: { kind: "items", items: [user("Hi")] }, ...changes };
}

export const weather: FunctionTool = {
  name: "get_weather",
  description: "Current weather",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
