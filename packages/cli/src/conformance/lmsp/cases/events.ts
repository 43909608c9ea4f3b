import { type Case, needsModel, type Visit } from "../case.ts";
import {
  deltaText,
  expectNumbered,
  expectProblem,
  expectSame,
  expectWhole,
  isTerminal,
  numbered,
  textOf,
} from "../expectations.ts";
import type { Block } from "../probe.ts";
import { longRequest, root, shortRequest } from "../requests.ts";
import { asValue } from "../value.ts";

export const eventCases: readonly Case[] = [
  { id: "events.whole", section: "§6", skip: needsModel, run: wholeStream },
  { id: "events.by-accept", section: "§5", skip: needsModel, run: byAccept },
  { id: "events.replay", section: "§6", skip: needsModel, run: replayed },
  { id: "events.resume", section: "§6", skip: needsModel, run: resumedEverywhere },
  { id: "events.resume-live", section: "§6", skip: needsModel, run: resumedLive },
  { id: "events.end", section: "§6", skip: needsModel, run: nothingAfterTheEnd },
  { id: "events.wrong-place", section: "§6", skip: needsModel, run: wrongPlace },
  { id: "events.readers", section: "§6", skip: needsModel, run: manyReaders },
];

const path = `${root}/responses`;

async function make({ probe, model }: Visit): Promise<{ readonly id: string; readonly blocks: readonly Block[] }> {
  const stream = await probe.stream(path, { body: { ...shortRequest(model), stream: true } });
  return { id: idIn(stream.blocks), blocks: numbered(stream) };
}

function idIn(blocks: readonly Block[]): string {
  return asValue(blocks[0]?.json).at("response", "id").text ?? "resp_none";
}

async function wholeStream(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const stream = await probe.stream(path, { body: { ...shortRequest(model), stream: true } });
  const response = expectWhole(visit, "The stream", stream);
  expect(deltaText(stream) === textOf(response), "Its deltas do not make the text of its last event.");
  expect(textOf(response) !== "", "It has no text.");
  const events = numbered(stream).map(({ event }) => event ?? "");
  const accepted = events.indexOf("response.in_progress");
  const firstOutput = events.findIndex((event) => event.startsWith("response.output"));
  expect(accepted > 0 && accepted < firstOutput, "response.in_progress does not come before the output.");
  for (const kind of ["output_item.added", "output_text.done", "output_item.done"]) {
    expect(events.includes(`response.${kind}`), `There is no response.${kind}.`);
  }
  const id = idIn(stream.blocks);
  expect(stream.headers.get("x-lmsp-response-id") === id, "X-LMSP-Response-Id does not name it.");
  const read = asValue((await probe.ask(`${path}/${id}`)).json);
  expect(read.json === response.json, "Read by its id it is another than in its last event.");
}

async function byAccept(visit: Visit): Promise<void> {
  const { probe, model } = visit;
  const stream = await probe.stream(path, { body: shortRequest(model) });
  expectWhole(visit, "A stream asked for by Accept", stream);
}

async function replayed(visit: Visit): Promise<void> {
  const { id, blocks } = await make(visit);
  const again = await visit.probe.stream(`${path}/${id}/events`);
  expectWhole(visit, "The replay", again);
  expectSame(visit, "The replay", numbered(again), blocks);
}

async function resumedEverywhere(visit: Visit): Promise<void> {
  const { id, blocks } = await make(visit);
  for (let after = 1; after < blocks.length; after += 1) {
    const byHeader = await visit.probe.stream(`${path}/${id}/events`, { headers: { "last-event-id": String(after) } });
    expectSame(visit, `Resumed after ${after} by Last-Event-ID, the stream`, numbered(byHeader), blocks.slice(after));
  }
  const middle = Math.floor(blocks.length / 2);
  const byQuery = await visit.probe.stream(`${path}/${id}/events?after=${middle}`);
  expectSame(visit, `Resumed after ${middle} by ?after, the stream`, numbered(byQuery), blocks.slice(middle));
}

async function resumedLive(visit: Visit): Promise<void> {
  const { probe, model, expect } = visit;
  const body = { ...longRequest(model), stream: true };
  const first = await probe.stream(path, { body, until: (_block, count) => count === 12 });
  const id = idIn(first.blocks);
  const seen = [...numbered(first)];
  for (let cut = 0; cut < 3; cut += 1) {
    const after = Number(seen.at(-1)?.id ?? 0);
    const next = await probe.stream(`${path}/${id}/events`, {
      headers: { "last-event-id": String(after) },
      until: (_block, count) => count === 8,
    });
    expectNumbered(visit, `Resumed after ${after} while it runs, the stream`, next, after);
    seen.push(...numbered(next));
  }
  const cancel = await probe.ask(`${path}/${id}/cancel`, { method: "POST" });
  expect(cancel.status === 200, `cancel answers ${cancel.status}.`);
  const rest = await probe.stream(`${path}/${id}/events?after=${seen.at(-1)?.id ?? 0}`);
  seen.push(...numbered(rest));
  expect(seen.filter(isTerminal).length === 1, "Together the pieces do not have one terminal event.");
  const whole = await probe.stream(`${path}/${id}/events`);
  expectSame(visit, "Read in pieces, the stream", seen, numbered(whole));
}

async function nothingAfterTheEnd(visit: Visit): Promise<void> {
  const { id, blocks } = await make(visit);
  for (const after of [blocks.length, blocks.length + 5]) {
    const answer = await visit.probe.ask(`${path}/${id}/events`, { headers: { "last-event-id": String(after) } });
    visit.expect(
      answer.status === 204,
      `After ${after} of ${blocks.length} events it answers ${answer.status}, not 204.`,
    );
    visit.expect(answer.text === "", "A 204 has a body.");
  }
}

async function wrongPlace(visit: Visit): Promise<void> {
  const { id } = await make(visit);
  for (const place of ["-1", "one", "1.5", "9".repeat(40)]) {
    const ask = { headers: { "last-event-id": place } };
    const answer = await visit.probe.ask(`${path}/${id}/events`, ask);
    expectProblem(visit, `Last-Event-ID: ${place.slice(0, 10)}`, answer, "invalid-request", 400);
  }
  const query = await visit.probe.ask(`${path}/${id}/events?after=-1`);
  expectProblem(visit, "?after=-1", query, "invalid-request", 400);
}

async function manyReaders(visit: Visit): Promise<void> {
  const { probe, model } = visit;
  const body = { ...shortRequest(model), stream: true };
  const first = await probe.stream(path, { body: { ...body, on_disconnect: "continue" }, until: () => true });
  const id = idIn(first.blocks);
  const streams = await Promise.all(Array.from({ length: 8 }, () => probe.stream(`${path}/${id}/events`)));
  for (const stream of streams) {
    expectWhole(visit, "One of eight readers'", stream);
    expectSame(visit, "One of eight readers'", numbered(stream), numbered(streams[0] ?? stream));
  }
}
