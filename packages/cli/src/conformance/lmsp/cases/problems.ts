import { type Case, needsModel, type Visit } from "../case.ts";
import { expectProblem } from "../expectations.ts";
import { root, shortRequest } from "../requests.ts";

export const problemCases: readonly Case[] = [
  { id: "problems.unknown-operation", section: "§3", run: unknownOperation },
  { id: "problems.method", section: "§3", run: wrongMethod },
  { id: "problems.invalid-json", section: "§3", run: invalidJson },
  { id: "problems.wrong-field", section: "§3", skip: needsModel, run: wrongField },
  { id: "problems.media-type", section: "§3", skip: needsModel, run: wrongMediaType },
  { id: "problems.unknown-model", section: "§3", run: unknownModel },
  { id: "problems.unknown-field", section: "§5", skip: needsModel, run: unknownField },
  { id: "problems.host", section: "§2", run: foreignHost },
];

async function unknownOperation(visit: Visit): Promise<void> {
  const answer = await visit.probe.ask(`${root}/nothing-here`);
  expectProblem(visit, "An unknown path", answer, "unsupported-operation", 404);
}

async function wrongMethod(visit: Visit): Promise<void> {
  const answer = await visit.probe.ask(`${root}/models`, { method: "DELETE" });
  expectProblem(visit, "DELETE of the catalog", answer, "method-not-allowed", 405);
  visit.expect(answer.headers.get("allow")?.includes("GET") ?? false, "A 405 does not say what is allowed.");
}

async function invalidJson(visit: Visit): Promise<void> {
  for (const body of ["{", "", '{"model": 1,}', "nonsense"]) {
    const answer = await visit.probe.ask(`${root}/responses`, { method: "POST", body });
    expectProblem(visit, `The body ${JSON.stringify(body)}`, answer, "invalid-json", 400);
  }
}

async function wrongField(visit: Visit): Promise<void> {
  const good = shortRequest(visit.model);
  const wrong: readonly (readonly [string, Record<string, unknown>])[] = [
    ["model", { ...good, model: 5 }],
    ["input", { ...good, input: 5 }],
    ["input", { model: visit.model }],
    ["sampling.temperature", { ...good, sampling: { temperature: "hot" } }],
    ["sampling.temperature", { ...good, sampling: { temperature: 99 } }],
    ["priority", { ...good, priority: 1000 }],
    ["deadline", { ...good, deadline: "tomorrow" }],
  ];
  for (const [param, body] of wrong) {
    const answer = await visit.probe.ask(`${root}/responses`, { body });
    const what = `${param} = ${JSON.stringify(body[param] ?? body["sampling"])}`;
    const named = expectProblem(visit, what, answer, "invalid-request", 400).at("param").text;
    visit.expect(named === param, `${what} is told as the fault of ${named ?? "no field"}.`);
  }
}

async function wrongMediaType(visit: Visit): Promise<void> {
  const body = JSON.stringify(shortRequest(visit.model));
  const answer = await visit.probe.ask(`${root}/responses`, { body, headers: { "content-type": "text/plain" } });
  expectProblem(visit, "A body of text/plain", answer, "unsupported-media-type", 415);
}

async function unknownModel(visit: Visit): Promise<void> {
  const answer = await visit.probe.ask(`${root}/responses`, { body: shortRequest("no-such-model") });
  const body = expectProblem(visit, "A request for an unknown model", answer, "model-not-found", 404);
  visit.expect(body.at("model").text === "no-such-model", "It does not name the model.");
}

async function unknownField(visit: Visit): Promise<void> {
  const body = { ...shortRequest(visit.model), no_such_field: 1 };
  const lenient = await visit.probe.ask(`${root}/responses`, { body });
  visit.expect(lenient.status === 200, `An unknown field is refused with ${lenient.status}.`);
  const strict = await visit.probe.ask(`${root}/responses`, { body, headers: { prefer: "handling=strict" } });
  expectProblem(visit, "An unknown field under handling=strict", strict, "invalid-request", 400);
}

async function foreignHost({ probe, expect }: Visit): Promise<void> {
  const status = await probe.askAs("rebound.example.com", `${root}/models`);
  expect(status === 403, `A request whose Host is a foreign name answers ${status}.`);
}
