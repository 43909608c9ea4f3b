import type { Visit } from "./case.ts";
import type { Answer, Block, Stream } from "./probe.ts";
import { asValue, type Value } from "./value.ts";

/** Expectations that many cases share. */

/** A problem of this code (LMSP §3, RFC 9457). */
export function expectProblem(visit: Visit, what: string, answer: Answer, code: string, status: number): Value {
  const type = answer.headers.get("content-type") ?? "";
  visit.expect(answer.status === status, `${what} answers ${answer.status}, not ${status}.`);
  visit.expect(type.startsWith("application/problem+json"), `${what} answers ${type || "no media type"}.`);
  const body = asValue(answer.json);
  const found = body.at("type").text;
  visit.expect(found === `urn:lmsp:problem:${code}`, `${what} has the type ${found ?? "of nothing"}, not ${code}.`);
  visit.expect(body.at("status").number === answer.status, `${what}: its member status is ${body.at("status").json}.`);
  visit.expect((body.at("title").text ?? "") !== "", `${what} has no title.`);
  visit.expect((body.at("detail").text ?? "") !== "", `${what} has no detail.`);
  return body;
}

const terminal = /^response\.(completed|incomplete|failed|cancelled)$/;

export function isTerminal({ event }: Block): boolean {
  return terminal.test(event ?? "");
}

/** Numbered blocks of a stream: those that are logged. */
export function numbered({ blocks }: Pick<Stream, "blocks">): readonly Block[] {
  return blocks.filter(({ id }) => id !== undefined);
}

/** Numbers from `after` + 1 without a gap, names that agree, and at most one end, the last (LMSP §6). */
export function expectNumbered(visit: Visit, what: string, stream: Stream, after = 0): void {
  const type = stream.headers.get("content-type") ?? "";
  visit.expect(stream.status === 200, `${what} answers ${stream.status}.`);
  visit.expect(type.startsWith("text/event-stream"), `${what} is ${type || "of no media type"}.`);
  let last = after;
  let lastMs = 0;
  for (const { id, event, json } of numbered(stream)) {
    const body = asValue(json);
    const sequence = Number(id);
    if (sequence !== last + 1) visit.report(`${what} goes from event ${last} to ${id}.`);
    last = sequence;
    visit.expect(
      body.at("sequence").number === sequence,
      `${what}: event ${id} says sequence ${body.at("sequence").json}.`,
    );
    visit.expect(
      body.at("type").text === event,
      `${what}: event ${id} is named ${event} and says ${body.at("type").json}.`,
    );
    const atMs = body.at("at_ms").number ?? -1;
    visit.expect(atMs >= lastMs, `${what}: event ${id} lies before the one before it (at_ms ${atMs}).`);
    lastMs = Math.max(lastMs, atMs);
  }
}

/** A whole stream: begins with `response.created`, ends with its only terminal event. */
export function expectWhole(visit: Visit, what: string, stream: Stream): Value {
  expectNumbered(visit, what, stream);
  const events = numbered(stream);
  visit.expect(events[0]?.event === "response.created", `${what} begins with ${events[0]?.event ?? "nothing"}.`);
  const ends = events.filter(isTerminal);
  visit.expect(ends.length === 1, `${what} has ${ends.length} terminal events.`);
  const last = events.at(-1);
  visit.expect(last !== undefined && isTerminal(last), `${what} ends with ${last?.event ?? "nothing"}.`);
  visit.expect(stream.hasEnded, `${what} does not close after its terminal event.`);
  return asValue(ends[0]?.json).at("response");
}

/** All text of a response's first candidate. */
export function textOf(response: Value): string {
  return response
    .at("output")
    .list.filter((item) => item.at("type").text === "message" && (item.at("candidate").number ?? 0) === 0)
    .flatMap((item) => item.at("content").list)
    .map((part) => (part.at("type").text === "output_text" ? (part.at("text").text ?? "") : ""))
    .join("");
}

/** Text that a stream's deltas make. */
export function deltaText(stream: Pick<Stream, "blocks">): string {
  return numbered(stream)
    .filter(({ event }) => event === "response.output_text.delta")
    .map(({ json }) => asValue(json).at("delta").text ?? "")
    .join("");
}

/** The same events with the same bytes. */
export function expectSame(visit: Visit, what: string, got: readonly Block[], wanted: readonly Block[]): void {
  visit.expect(got.length === wanted.length, `${what} has ${got.length} events, not ${wanted.length}.`);
  const parted = wanted.find((block, at) => got[at]?.id !== block.id || got[at]?.data !== block.data);
  if (parted !== undefined && got.length === wanted.length) visit.report(`${what} differs at event ${parted.id}.`);
}
