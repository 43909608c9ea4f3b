import { type Case, needsModel, type Visit } from "../case.ts";
import { expectNumbered, expectProblem, isTerminal, numbered, textOf } from "../expectations.ts";
import { longRequest, root, shortRequest } from "../requests.ts";
import { asValue, type Value } from "../value.ts";

export const responseCases: readonly Case[] = [
  { id: "responses.whole", section: "§5", skip: needsModel, run: wholeAnswer },
  { id: "responses.list", section: "§5", skip: needsModel, run: listed },
  { id: "responses.cancel", section: "§5", skip: needsModel, run: cancelled },
  { id: "responses.delete", section: "§5", skip: needsModel, run: deleted },
  { id: "responses.unknown", section: "§5", run: unknown },
  { id: "responses.change", section: "§5", skip: needsModel, run: changed },
  { id: "responses.deadline", section: "§5", skip: needsModel, run: pastDeadline },
  { id: "responses.supersedes", section: "§5", skip: needsModel, run: superseded },
];

const path = `${root}/responses`;
const statuses = ["completed", "incomplete"];

async function wholeAnswer({ probe, model, expect }: Visit): Promise<void> {
  const answer = await probe.ask(path, { body: shortRequest(model) });
  expect(answer.status === 200, `It answers ${answer.status}: ${answer.text.slice(0, 200)}`);
  const response = asValue(answer.json);
  const id = response.at("id").text ?? "";
  expect(/^resp_\w+$/.test(id), `Its id is ${response.at("id").json}.`);
  expect(statuses.includes(response.at("status").text ?? ""), `Its status is ${response.at("status").json}.`);
  expect(response.at("model").text === model, `Its model is ${response.at("model").json}.`);
  expect(response.at("door").text === "lmsp", `Its door is ${response.at("door").json}.`);
  expect(textOf(response) !== "", "It has no text.");
  const usage = response.at("usage");
  const [input, output, total] = ["input_tokens", "output_tokens", "total_tokens"].map((name) => usage.at(name).number);
  expect(input !== undefined && output !== undefined, "It does not count its tokens.");
  expect((input ?? 0) + (output ?? 0) === total, `usage: ${input} and ${output} are not ${total} in all.`);
  expect(!Number.isNaN(Date.parse(response.at("created_at").text ?? "")), "created_at is no instant.");
  for (const item of response.at("output").list) {
    expect((item.at("id").text ?? "") !== "", "An item of its output has no id.");
  }
  expect(answer.headers.get("x-lmsp-response-id") === id, "X-LMSP-Response-Id does not name it.");
  expect(answer.headers.get("location") === `${path}/${id}`, `Location is ${answer.headers.get("location")}.`);
  const again = await probe.ask(`${path}/${id}`);
  expect(again.status === 200, `Read again it answers ${again.status}.`);
  expect(again.text === answer.text, "Read again it is another.");
}

async function listed({ probe, model, expect }: Visit): Promise<void> {
  const made: string[] = [];
  for (let count = 0; count < 3; count += 1) made.push(await make(probe.ask(path, { body: shortRequest(model) })));
  const page = asValue((await probe.ask(`${path}?limit=1000&model=${encodeURIComponent(model)}`)).json);
  const ids = page.at("data").list.map((each) => each.at("id").text ?? "");
  expect(
    made.every((id) => ids.includes(id)),
    "A response that was just made is not listed.",
  );
  const instants = page.at("data").list.map((each) => each.at("created_at").text ?? "");
  const newestFirst = [...instants].sort().reverse();
  expect(instants.join() === newestFirst.join(), "They are not listed newest first.");
  const first = asValue((await probe.ask(`${path}?limit=1`)).json);
  const cursor = first.at("next_cursor").text;
  expect(first.at("data").list.length === 1, "A page of one has another length.");
  expect(cursor !== undefined, "A page that others follow has no next_cursor.");
  const second = asValue((await probe.ask(`${path}?limit=1&cursor=${encodeURIComponent(cursor ?? "")}`)).json);
  const [one, two] = [first, second].map((each) => each.at("data", 0, "id").text);
  expect(one !== two, "The second page repeats the first.");
  const none = asValue((await probe.ask(`${path}?status=queued`)).json);
  expect(
    none.at("data").list.every((each) => each.at("status").text === "queued"),
    "The filter `status` lets others in.",
  );
}

async function make(answer: ReturnType<Visit["probe"]["ask"]>): Promise<string> {
  return asValue((await answer).json).at("id").text ?? "";
}

/** Begins a long answer and leaves it running. */
async function begin({ probe, model, report }: Visit): Promise<string | undefined> {
  const body = { ...longRequest(model), stream: true, on_disconnect: "continue" };
  const stream = await probe.stream(path, { body, until: ({ event }) => event === "response.output_text.delta" });
  const id = asValue(stream.blocks[0]?.json).at("response", "id").text;
  if (id === undefined) report(`A long answer can't be begun: ${stream.status} ${stream.text.slice(0, 200)}`);
  return id;
}

async function cancelled(visit: Visit): Promise<void> {
  const { probe, expect } = visit;
  const id = await begin(visit);
  if (id === undefined) return;
  const cancel = await probe.ask(`${path}/${id}/cancel`, { method: "POST" });
  expect(cancel.status === 200, `cancel answers ${cancel.status}.`);
  const { status } = await endOf(visit, id);
  expect(status === "cancelled", `Cancelled, it ends ${status}.`);
  const again = await probe.ask(`${path}/${id}/cancel`, { method: "POST" });
  expect(again.status === 200, `A second cancel answers ${again.status}.`);
  expect(asValue(again.json).at("status").text === "cancelled", "A second cancel changes it.");
  const events = await probe.stream(`${path}/${id}/events`);
  const last = numbered(events).at(-1);
  expect(last?.event === "response.cancelled", `Its events end with ${last?.event ?? "nothing"}.`);
}

/** Reads its events to the end, then the response itself. */
async function endOf({ probe }: Visit, id: string): Promise<{ readonly status: string; readonly response: Value }> {
  await probe.stream(`${path}/${id}/events`, { until: isTerminal });
  const response = asValue((await probe.ask(`${path}/${id}`)).json);
  return { status: response.at("status").text ?? "nothing", response };
}

async function deleted(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const id = await make(probe.ask(path, { body: shortRequest(model) }));
  const answer = await probe.ask(`${path}/${id}`, { method: "DELETE" });
  expect(answer.status === 204, `DELETE answers ${answer.status}.`);
  expectProblem(visit, "A deleted response", await probe.ask(`${path}/${id}`), "not-found", 404);
  const page = asValue((await probe.ask(`${path}?limit=100`)).json);
  expect(
    page.at("data").list.every((each) => each.at("id").text !== id),
    "A deleted response is still listed.",
  );
}

async function unknown(visit: Visit): Promise<void> {
  const { probe } = visit;
  for (const id of ["resp_nosuch", "resp_%00", "..%2f..%2fetc", "x".repeat(500)]) {
    expectProblem(visit, `GET of ${id.slice(0, 20)}`, await probe.ask(`${path}/${id}`), "not-found", 404);
  }
  const ask = { method: "POST" };
  expectProblem(visit, "cancel", await probe.ask(`${path}/resp_nosuch/cancel`, ask), "not-found", 404);
  expectProblem(visit, "events", await probe.ask(`${path}/resp_nosuch/events`), "not-found", 404);
}

async function changed(visit: Visit): Promise<void> {
  const { probe, expect } = visit;
  const id = await begin(visit);
  if (id === undefined) return;
  const answer = await probe.ask(`${path}/${id}`, { method: "PATCH", body: { priority: 3 } });
  expect(answer.status === 200, `PATCH answers ${answer.status}.`);
  expect(asValue(answer.json).at("priority").number === 3, "PATCH does not change the priority.");
  const wrong = await probe.ask(`${path}/${id}`, { method: "PATCH", body: { priority: "high" } });
  expectProblem(visit, "PATCH with a wrong priority", wrong, "invalid-request", 400);
  await probe.ask(`${path}/${id}/cancel`, { method: "POST" });
  await endOf(visit, id);
  const late = await probe.ask(`${path}/${id}`, { method: "PATCH", body: { priority: 1 } });
  expectProblem(visit, "PATCH of what has ended", late, "conflict", 409);
}

async function pastDeadline(visit: Visit): Promise<void> {
  const { probe, model } = visit;
  const body = { ...shortRequest(model), deadline: "2001-01-01T00:00:00Z" };
  expectProblem(visit, "A deadline that has passed", await probe.ask(path, { body }), "deadline-exceeded", 504);
  const stream = await probe.stream(path, { body: { ...longRequest(model), timeout_ms: 400, stream: true } });
  expectNumbered(visit, "A stream past its deadline", stream);
  const last = asValue(numbered(stream).at(-1)?.json);
  visit.expect(last.at("type").text === "response.failed", `Past its deadline it ends with ${last.at("type").json}.`);
  const type = last.at("response", "problem", "type").text;
  visit.expect(type === "urn:lmsp:problem:deadline-exceeded", `Its problem is ${type ?? "none"}.`);
}

async function superseded(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const id = await begin(visit);
  if (id === undefined) return;
  const next = await probe.ask(path, { body: { ...shortRequest(model), supersedes: id } });
  expect(next.status === 200, `The one that supersedes answers ${next.status}.`);
  const { status, response } = await endOf(visit, id);
  expect(status === "cancelled", `Superseded, it ends ${status}.`);
  const type = response.at("problem", "type").text;
  expect(type === "urn:lmsp:problem:superseded", `Its problem is ${type ?? "none"}.`);
}
