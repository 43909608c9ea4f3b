import { type BackendRequest, type InputItem, type Role, requestDefaults } from "@plenum/core";
import { describe, expect, test } from "vitest";
import { dropOldestTurn } from "./drop-oldest-turn.ts";

function message(role: Role, text: string): InputItem {
  return { type: "message", role, content: [{ type: "text", text }] };
}

function requestWith(items: readonly InputItem[]): BackendRequest {
  return { ...requestDefaults, model: "m", input: { kind: "items", items } };
}

const call = (callId: string): InputItem => ({ type: "function_call", callId, name: "t", arguments: "{}" });
const output = (callId: string): InputItem => ({ type: "function_call_output", callId, output: callId });
const [system, developer] = [message("system", "s"), message("developer", "d")];
const [a, b] = [message("user", "a"), message("user", "b")];
const answer = message("assistant", "x");

function itemsOf(request: BackendRequest | undefined): readonly InputItem[] | undefined {
  return request?.input.kind === "items" ? request.input.items : undefined;
}

describe("the oldest turn goes", () => {
  const cases: Record<string, [before: InputItem[], after: InputItem[] | undefined]> = {
    "a user's message and its answer": [
      [system, a, answer, developer, b],
      [system, developer, b],
    ],
    "calls with their outputs": [[a, call("1"), call("2"), output("1"), output("2"), answer, b], [b]],
    "an output that stands further on": [[a, call("1"), b, output("1")], [b]],
    "an answer before the first question": [[answer, a], [a]],
    "within the last turn, its oldest step": [
      [a, call("1"), output("1"), call("2"), output("2")],
      [a, call("2"), output("2")],
    ],
    "not the last step": [[a, call("1"), output("1")], undefined],
    "not the only question": [[system, a], undefined],
    "nothing there": [[system], undefined],
  };
  test.each(Object.entries(cases))("%s", (_name, [before, after]) => {
    expect(itemsOf(dropOldestTurn(requestWith(before)))).toEqual(after);
  });

  test("a completion has no turns", () => {
    expect(
      dropOldestTurn({ ...requestWith([]), input: { kind: "completion", prompt: "x", raw: false } }),
    ).toBeUndefined();
  });
});
