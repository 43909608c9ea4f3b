import { type JsonObject, schemaVersion } from "@plenum/profile";
import type { Expectation, ExpectedEvent } from "./expectation.ts";
import { compare } from "./expectation.ts";
import type { Terminal } from "./observe.ts";
import { type Judgement, type Target, visit } from "./visit.ts";

/** A recipe of the suite, or a case of its plan: a request and what must come of it. */
export interface ProfileCase {
  readonly id: string;
  readonly operation: string;
  readonly body: JsonObject;
  /** Of `request.nnrp`; other members are for the harness, or unknown. */
  readonly timeoutMs: number | undefined;
  readonly diagnostics: boolean | undefined;
  readonly cancelAfterEvents: number | undefined;
  readonly expect: Expectation;
}

/** A file of the suite that can't be read; the message names the member. */
export class SuiteFileError extends Error {
  override readonly name = "SuiteFileError";
}

const terminals: readonly unknown[] = ["success", "error", "cancelled"] satisfies readonly Terminal[];

/**
 * Reads a recipe or a plan's case.
 * @param path of it in its file, for messages.
 * @throws SuiteFileError
 */
export function readProfileCase(value: unknown, path: string): ProfileCase {
  const member = toObject(value, path);
  const request = toObject(member["request"], `${path}.request`);
  const nnrp = request["nnrp"] === undefined ? {} : toObject(request["nnrp"], `${path}.request.nnrp`);
  return {
    id: toText(member["id"], `${path}.id`),
    operation: toText(member["operation"], `${path}.operation`),
    body: toObject(request["body"], `${path}.request.body`),
    timeoutMs: toCount(nnrp["timeout_ms"], `${path}.request.nnrp.timeout_ms`),
    diagnostics: nnrp["diagnostics"] === true ? true : undefined,
    cancelAfterEvents: toCount(nnrp["cancel_after_events"], `${path}.request.nnrp.cancel_after_events`),
    expect: toExpectation(member["expect"], `${path}.expect`),
  };
}

function toExpectation(value: unknown, path: string): Expectation {
  const { events, terminal } = toObject(value, path);
  if (!terminals.includes(terminal)) throw new SuiteFileError(`${path}.terminal must be success, error or cancelled.`);
  if (!Array.isArray(events)) throw new SuiteFileError(`${path}.events must be a list.`);
  return {
    terminal: terminal as Terminal,
    events: events.map((event, index) => toExpectedEvent(event, `${path}.events[${index}]`)),
  };
}

function toExpectedEvent(value: unknown, path: string): ExpectedEvent {
  const { type, optional, min_count: minCount, fields } = toObject(value, path);
  return {
    type: toText(type, `${path}.type`),
    minCount: toCount(minCount, `${path}.min_count`) ?? (optional === true ? 0 : 1),
    fields: fields === undefined ? {} : toObject(fields, `${path}.fields`),
  };
}

export function toObject(value: unknown, path: string): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new SuiteFileError(`${path} must be an object.`);
}

export function toText(value: unknown, path: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new SuiteFileError(`${path} must be a text.`);
}

function toCount(value: unknown, path: string): number | undefined {
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= 0))
    return value as number | undefined;
  throw new SuiteFileError(`${path} must be a whole number from 0.`);
}

/** Runs a case over a connection of its own. @throws NnrpError `connect-failed` */
export function runProfileCase(
  target: Target,
  { cancelAfterEvents, expect, ...given }: ProfileCase,
): Promise<Judgement> {
  return visit(target, async ({ ask, report }) => {
    const { operation, body, timeoutMs, diagnostics } = given;
    const envelope = toEnvelope(target, operation, body, { timeout_ms: timeoutMs, diagnostics });
    const observation = await ask(envelope, cancelAfterEvents === undefined ? {} : { cancelAfterEvents });
    for (const problem of compare(expect, observation)) report(problem);
    return observation;
  });
}

/** A request as JSON, with the target's token. Members that are undefined are left out. */
export function toEnvelope(target: Target, operation: string, body: unknown, nnrp: JsonObject = {}): string {
  const { token } = target;
  const policy = token === undefined ? nnrp : { ...nnrp, authorization: `Bearer ${token}` };
  const asksForSomething = Object.values(policy).some((value) => value !== undefined);
  return JSON.stringify({
    schema_version: schemaVersion,
    operation,
    body,
    ...(asksForSomething ? { nnrp: policy } : {}),
  });
}
