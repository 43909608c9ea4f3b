import { type Case, type Facts, needsModel, type Visit } from "../case.ts";
import { expectProblem, expectWhole, numbered } from "../expectations.ts";
import type { Stream } from "../probe.ts";
import { longRequest, root, shortRequest } from "../requests.ts";
import { asValue, linesOf, type Value } from "../value.ts";

const needs =
  (kind: string) =>
  (facts: Facts): string | undefined =>
    facts.tasks.has(kind) ? needsModel(facts) : `tasks of the kind ${kind} are not declared`;

export const taskCases: readonly Case[] = [
  { id: "tasks.background", section: "§7", skip: needs("response"), run: background },
  { id: "tasks.respond-async", section: "§5", skip: needs("response"), run: respondAsync },
  { id: "tasks.cancel", section: "§7", skip: needs("response"), run: cancelled },
  { id: "tasks.batch", section: "§7", skip: needs("batch"), run: batch },
  { id: "tasks.batch-cancel", section: "§7", skip: needs("batch"), run: batchCancelled },
  { id: "tasks.wrong", section: "§7", skip: needs("response"), run: wrong },
  { id: "tasks.idempotency", section: "§5", skip: withIdempotency, run: idempotent },
];

function withIdempotency(facts: Facts): string | undefined {
  const isThere = facts.document.at("features", "idempotency").raw === true;
  return isThere ? needsModel(facts) : "idempotency is not declared";
}

const tasks = `${root}/tasks`;
const responses = `${root}/responses`;

async function background(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const answer = await probe.ask(responses, { body: { ...shortRequest(model), background: true } });
  expect(answer.status === 202, `It answers ${answer.status}, not 202.`);
  const made = asValue(answer.json);
  const id = made.at("id").text ?? "resp_none";
  expect(answer.headers.get("location") === `${responses}/${id}`, `Location is ${answer.headers.get("location")}.`);
  expect(made.at("background").raw === true, "The Response does not say that it is a background one.");
  const listed = asValue((await probe.ask(`${tasks}?kind=response&limit=100`)).json).at("data").list;
  expect(
    listed.some((task) => task.at("id").text === id),
    "An accepted task is not listed.",
  );
  expectWhole(visit, "Its stream", await probe.stream(`${responses}/${id}/events`));
  const task = await probe.ask(`${tasks}/${id}`);
  expect(task.status === 200, `As a task it answers ${task.status}.`);
  expect(
    asValue(task.json).at("state").text === "succeeded",
    `As a task it is ${asValue(task.json).at("state").json}.`,
  );
  expect(asValue(task.json).at("kind").text === "response", "As a task it is not of the kind response.");
}

async function respondAsync({ probe, model, expect }: Visit): Promise<void> {
  const answer = await probe.ask(responses, { body: longRequest(model), headers: { prefer: "respond-async" } });
  expect(answer.status === 202, `It answers ${answer.status}, not 202.`);
  const applied = answer.headers.get("preference-applied") ?? "";
  expect(applied.includes("respond-async"), `Preference-Applied is ${applied || "missing"}.`);
  const id = asValue(answer.json).at("id").text ?? "resp_none";
  await probe.ask(`${responses}/${id}/cancel`, { method: "POST" });
}

async function cancelled(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const made = await probe.ask(tasks, { body: { kind: "response", request: longRequest(model) } });
  expect(made.status === 202, `POST …/tasks answers ${made.status}.`);
  const id = asValue(made.json).at("id").text ?? "task_none";
  expect(made.headers.get("location")?.endsWith(id) ?? false, `Location is ${made.headers.get("location")}.`);
  const cancel = await probe.ask(`${tasks}/${id}/cancel`, { method: "POST" });
  expect(cancel.status === 200, `cancel answers ${cancel.status}.`);
  await probe.stream(`${tasks}/${id}/events`);
  const { json } = await probe.ask(`${tasks}/${id}`);
  expect(asValue(json).at("state").text === "cancelled", `Cancelled, it is ${asValue(json).at("state").json}.`);
  const gone = await probe.ask(`${tasks}/${id}`, { method: "DELETE" });
  expect(gone.status === 204, `DELETE answers ${gone.status}.`);
  expectProblem(visit, "A deleted task", await probe.ask(`${tasks}/${id}`), "not-found", 404);
}

/** Numbered without a gap, ended once, and the same on a replay. */
function checkTaskEvents(visit: Visit, what: string, stream: Stream): Value {
  const events = numbered(stream);
  const gap = events.findIndex(({ id }, at) => Number(id) !== at + 1);
  visit.expect(gap < 0, `${what}: the number of event ${gap + 1} is ${events[gap]?.id}.`);
  const ends = events.filter(({ event }) => /^task\.(succeeded|failed|cancelled)$/.test(event ?? ""));
  visit.expect(ends.length === 1 && ends[0] === events.at(-1), `${what}: it has ${ends.length} terminal events.`);
  for (const { event, json } of events) {
    visit.expect(asValue(json).at("type").text === event, `${what}: an event is named ${event} and says another type.`);
  }
  return asValue(events.at(-1)?.json);
}

async function batch(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const lines = [
    { custom_id: "one", request: shortRequest(model) },
    { custom_id: "wrong", request: { model: "no-such-model", input: "Hi" } },
    shortRequest(model),
    { custom_id: "last", request: shortRequest(model) },
  ];
  const requests = lines.map((line) => JSON.stringify(line)).join("\n");
  const made = await probe.ask(tasks, { body: { kind: "batch", requests } });
  expect(made.status === 202, `It answers ${made.status}: ${made.text.slice(0, 200)}`);
  const id = asValue(made.json).at("id").text ?? "task_none";
  const stream = await probe.stream(`${tasks}/${id}/events`);
  const end = checkTaskEvents(visit, "The batch", stream);
  expect(end.at("type").text === "task.succeeded", `It ends with ${end.at("type").json}.`);
  const { text, headers } = await probe.ask(`${tasks}/${id}/output`);
  expect(/jsonl|ndjson/.test(headers.get("content-type") ?? ""), `Its output is ${headers.get("content-type")}.`);
  const output = linesOf(text);
  expect(output.length === lines.length, `Its output has ${output.length} lines, not ${lines.length}.`);
  expect(
    output.every((line, at) => line.at("index").number === at),
    "Its output is not in the order of its requests.",
  );
  const names = output.map((line) => line.at("custom_id").text);
  expect(names.join() === ["one", "wrong", undefined, "last"].join(), `Its lines are called ${names.join()}.`);
  const problem = output[1]?.at("problem", "type").text;
  expect(problem === "urn:lmsp:problem:model-not-found", `The wrong line has the problem ${problem ?? "none"}.`);
  for (const at of [0, 2, 3]) {
    const status = output[at]?.at("response", "status").text ?? "";
    expect(["completed", "incomplete"].includes(status), `Line ${at} is ${status || "without a response"}.`);
  }
  expect(
    asValue((await probe.ask(`${tasks}/${id}`)).json).at("progress", "done").number === 4,
    "Its progress is not 4.",
  );
}

async function batchCancelled(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const requests = Array.from({ length: 8 }, () => longRequest(model));
  const made = await probe.ask(tasks, { body: { kind: "batch", requests } });
  const id = asValue(made.json).at("id").text ?? "task_none";
  const cancel = await probe.ask(`${tasks}/${id}/cancel`, { method: "POST" });
  expect(cancel.status === 200, `cancel answers ${cancel.status}.`);
  const end = checkTaskEvents(visit, "The batch", await probe.stream(`${tasks}/${id}/events`));
  expect(end.at("type").text === "task.cancelled", `Cancelled, it ends with ${end.at("type").json}.`);
}

async function wrong(visit: Visit): Promise<void> {
  const { probe } = visit;
  const unknownKind = await probe.ask(tasks, { body: { kind: "tea" } });
  expectProblem(visit, "A task of an unknown kind", unknownKind, "invalid-request", 400);
  const empty = await probe.ask(tasks, { body: {} });
  expectProblem(visit, "A task without a kind", empty, "invalid-request", 400);
  expectProblem(visit, "An unknown task", await probe.ask(`${tasks}/task_nosuch`), "not-found", 404);
  const events = await probe.ask(`${tasks}/task_nosuch/events`);
  expectProblem(visit, "Events of an unknown task", events, "not-found", 404);
}

async function idempotent(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const headers = { "idempotency-key": `conformance-${crypto.randomUUID()}` };
  const body = shortRequest(model);
  const first = await probe.ask(responses, { body, headers });
  const again = await probe.ask(responses, { body, headers });
  const [one, two] = [first, again].map(({ json }) => asValue(json).at("id").text);
  expect(first.status === 200 && again.status === 200, `It answers ${first.status}, then ${again.status}.`);
  expect(one !== undefined && one === two, `The same key makes ${one}, then ${two}.`);
  const other = await probe.ask(responses, { body: { ...body, input: "Another text." }, headers });
  expectProblem(visit, "The same key with another body", other, "idempotency-mismatch", 422);
  const free = await probe.ask(responses, { body, headers: { "idempotency-key": `${headers["idempotency-key"]}-2` } });
  expect(asValue(free.json).at("id").text !== one, "Another key gives the same response.");
}
