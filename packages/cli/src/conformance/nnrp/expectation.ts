import type { JsonObject } from "@plenum/profile";
import type { Event, Observation, Terminal } from "./observe.ts";

export interface ExpectedEvent {
  readonly type: string;
  /** Least number of them. */
  readonly minCount: number;
  /** What the first one must contain. */
  readonly fields: JsonObject;
}

export interface Expectation {
  readonly events: readonly ExpectedEvent[];
  readonly terminal: Terminal;
}

/** What an observation lacks, by the rules of the outside suite's validator. */
export function compare(expected: Expectation, { events, terminal }: Observation): readonly string[] {
  const problems: string[] = [];
  if (terminal !== expected.terminal) {
    problems.push(`It ended with ${terminal}${codeOf(events)}, not with ${expected.terminal}.`);
  }
  let last = -1;
  for (const { type, minCount, fields } of expected.events) {
    const count = events.filter((event) => event.type === type).length;
    if (count < minCount) problems.push(`${type} came ${count} times, not at least ${minCount}.`);
    const at = events.findIndex((event) => event.type === type);
    const first = events[at];
    if (first === undefined) continue;
    const missing = lacks(first, fields, type);
    if (missing !== undefined) problems.push(missing);
    if (minCount === 0) continue;
    if (at < last) problems.push(`${type} came before what should come first.`);
    last = Math.max(last, at);
  }
  return problems;
}

function codeOf(events: readonly Event[]): string {
  const error = events.findLast(({ type }) => type === "response.error")?.["error"];
  const code = isObject(error) ? error["code"] : undefined;
  return typeof code === "string" ? ` (${code})` : "";
}

/** Objects hold at least these members, lists begin with these, everything else is equal. */
function lacks(found: unknown, wanted: unknown, path: string): string | undefined {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found)) return `${path} is no list.`;
    return firstOf(wanted.entries(), ([index, value]) => lacks(found[index], value, `${path}[${index}]`));
  }
  if (isObject(wanted)) {
    if (!isObject(found)) return `${path} is no object.`;
    return firstOf(Object.entries(wanted), ([name, value]) => lacks(found[name], value, `${path}.${name}`));
  }
  return found === wanted ? undefined : `${path} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}.`;
}

function firstOf<T>(list: Iterable<T>, find: (value: T) => string | undefined): string | undefined {
  for (const value of list) {
    const found = find(value);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
