import { type Case, type Facts, needsModel, type Visit } from "../case.ts";
import { expectProblem } from "../expectations.ts";
import { root, shortRequest } from "../requests.ts";
import { asValue } from "../value.ts";

const whenRequired = ({ requiresToken }: Facts): string | undefined =>
  requiresToken ? undefined : "the service needs no token";

export const accessCases: readonly Case[] = [
  { id: "access.required", section: "§2", skip: whenRequired, run: tokenRequired },
  { id: "access.every-door", section: "§2", skip: whenRequired, run: everyDoor },
  { id: "access.foreign", section: "§2", skip: withTwoTokens, run: foreignIsNotFound },
];

function withTwoTokens(facts: Facts): string | undefined {
  if (facts.otherToken === undefined) return "name a token of another principal with --other-token";
  return needsModel(facts);
}

async function tokenRequired(visit: Visit): Promise<void> {
  for (const token of [null, "wrong", "x".repeat(5000)]) {
    const what = token === null ? "Without a token" : "With a wrong token";
    for (const path of ["/models", "/responses", "/tasks"]) {
      const answer = await visit.probe.ask(`${root}${path}`, { token });
      expectProblem(visit, `${what}, ${path}`, answer, "unauthorized", 401);
    }
  }
}

async function everyDoor({ probe, facts, expect }: Visit): Promise<void> {
  const openai = facts.interfaces.get("openai");
  const ollama = facts.interfaces.get("ollama");
  if (openai !== undefined) {
    const { status, json } = await probe.ask(`${openai}/models`, { token: "wrong" });
    expect(status === 401, `With a wrong token the OpenAI interface answers ${status}.`);
    expect(asValue(json).at("error", "message").text !== undefined, "Its error is not in OpenAI's form.");
  }
  if (ollama !== undefined) {
    const { status, json } = await probe.ask(`${ollama}/api/tags`, { token: "wrong" });
    expect(status === 401, `With a wrong token the Ollama interface answers ${status}.`);
    expect(asValue(json).at("error").text !== undefined, "Its error is not in Ollama's form.");
  }
}

async function foreignIsNotFound(visit: Visit): Promise<void> {
  const { probe, facts, model } = visit;
  const made = await probe.ask(`${root}/responses`, { body: shortRequest(model) });
  const id = asValue(made.json).at("id").text ?? "resp_none";
  const token = facts.otherToken ?? null;
  const asks = [
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/events"],
    ["POST", "/cancel"],
  ] as const;
  for (const [method, rest] of asks) {
    const answer = await probe.ask(`${root}/responses/${id}${rest}`, { method, token });
    expectProblem(visit, `${method} of somebody else's response${rest}`, answer, "not-found", 404);
  }
  const list = asValue((await probe.ask(`${root}/responses?limit=1000`, { token })).json).at("data").list;
  visit.expect(
    list.every((each) => each.at("id").text !== id),
    "Somebody else's response is listed.",
  );
  const still = await probe.ask(`${root}/responses/${id}`);
  visit.expect(still.status === 200, `After all that its owner gets ${still.status}.`);
}
