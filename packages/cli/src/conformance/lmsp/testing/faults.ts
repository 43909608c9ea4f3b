import type { Answered, Asked, Fault } from "./faulty-proxy.ts";

/** Ways in which services have gone wrong, or may. Each must be caught. */
export const faults: readonly Fault[] = [
  { name: "an event is left out", caughtBy: "events.whole", block: (block) => (/^id: 4\n/.test(block) ? [] : [block]) },
  {
    name: "an event comes twice",
    caughtBy: "events.whole",
    block: (block) => (/^id: 4\n/.test(block) ? [block, block] : [block]),
  },
  {
    name: "a stream ends twice",
    caughtBy: "events.whole",
    block: (block) => (isEnd(block) ? [block, block.replaceAll(/(id: |"sequence":)(\d+)/g, plusOne)] : [block]),
  },
  {
    name: "a stream does not say how it ends",
    caughtBy: "events.whole",
    block: (block) => (isEnd(block) ? [] : [block]),
  },
  {
    name: "data and number disagree",
    caughtBy: "events.whole",
    block: (block) => [block.replace(/"sequence":(\d+)/, (_all, digits) => `"sequence":${Number(digits) + 1}`)],
  },
  {
    name: "events are named by another word",
    caughtBy: "events.whole",
    block: (block) => [block.replace("event: response.", "event: ")],
  },
  {
    name: "a stream is sent as text",
    caughtBy: "events.whole",
    head: (headers) => ({ ...headers, "content-type": "text/plain" }),
  },
  {
    name: "a text is doubled",
    caughtBy: "events.whole",
    block: (block) => [block.replace(/"delta":"([^"]+)"/, '"delta":"$1$1"')],
  },
  {
    name: "Last-Event-ID is not looked at",
    caughtBy: "events.resume",
    ask: ({ headers: { "last-event-id": _place, ...headers }, ...asked }) => ({ ...asked, headers }),
  },
  {
    name: "resuming skips an event",
    caughtBy: "events.resume",
    ask: (asked) => {
      const place = asked.headers["last-event-id"];
      if (typeof place !== "string" || !/^\d{1,3}$/.test(place)) return asked;
      return { ...asked, headers: { ...asked.headers, "last-event-id": String(Number(place) + 1) } };
    },
  },
  {
    name: "a replay has other times",
    caughtBy: "events.replay",
    block: (block, { method }) => [method === "GET" ? block.replace(/"at_ms":(\d+)/, '"at_ms":1$1') : block],
  },
  {
    name: "a finished stream is 200 without events",
    caughtBy: "events.end",
    answer: (answered, asked) =>
      asked.path.includes("/events") && answered.status === 204 ? withStatus(200)(answered, asked) : answered,
  },
  {
    name: "a foreign id is forbidden",
    caughtBy: "access.foreign",
    answer: when(/responses\/resp_/, 404, withStatus(403)),
  },
  {
    name: "a problem has the wrong media type",
    caughtBy: "problems",
    answer: onProblems(withType("application/json")),
  },
  { name: "a problem has no type", caughtBy: "problems", answer: onProblems(withMember("type", undefined)) },
  { name: "a problem's status is another", caughtBy: "problems", answer: onProblems(withMember("status", 200)) },
  {
    name: "a problem does not name the field",
    caughtBy: "problems.wrong-field",
    answer: onProblems(withMember("param", undefined)),
  },
  { name: "the catalog has no ETag", caughtBy: "catalog.etag", answer: when(/\/models$/, 200, withoutHeader("etag")) },
  {
    name: "If-None-Match is not looked at",
    caughtBy: "catalog.etag",
    ask: ({ headers: { "if-none-match": _etag, ...headers }, ...asked }) => ({ ...asked, headers }),
  },
  {
    name: "a model is listed twice",
    caughtBy: "catalog.list",
    answer: when(/lmsp\/v1\/models$/, 200, (answered) =>
      withBody(answered, (body) => ({ ...body, data: doubled(body["data"]) })),
    ),
  },
  {
    name: "usage does not add up",
    caughtBy: "responses.whole",
    answer: when(/responses/, 200, replaceText(/"total_tokens":(\d+)/g, '"total_tokens":9$1')),
  },
  {
    name: "Location is missing",
    caughtBy: "responses.whole",
    answer: when(/responses$/, 200, withoutHeader("location")),
  },
  { name: "cancelling does nothing", caughtBy: "responses.cancel", ask: toHarmless(/\/cancel/) },
  { name: "deleting does nothing", caughtBy: "responses.delete", answer: onDelete, ask: deleteToGet },
  {
    name: "Prefer is not looked at",
    caughtBy: "problems.unknown-field",
    ask: ({ headers: { prefer: _prefer, ...headers }, ...asked }) => ({ ...asked, headers }),
  },
  {
    name: "an idempotency key is not looked at",
    caughtBy: "tasks.idempotency",
    ask: ({ headers: { "idempotency-key": _key, ...headers }, ...asked }) => ({ ...asked, headers }),
  },
  {
    name: "accepted tasks are lost",
    caughtBy: "tasks.background",
    answer: when(/tasks\/(resp|task)_\w+$/, 200, withStatus(404)),
  },
  { name: "a batch answers in any order", caughtBy: "tasks.batch", answer: when(/\/output$/, 200, reversedLines) },
  {
    name: "a background answer is 200",
    caughtBy: "tasks.background",
    answer: when(/(tasks|responses)$/, 202, withStatus(200)),
  },
  { name: "no token is needed", caughtBy: "access", ask: withToken },
  {
    name: "the document has no interfaces",
    caughtBy: "discovery",
    answer: when(/well-known/, 200, (answered) => withBody(answered, ({ interfaces: _gone, ...body }) => body)),
  },
  {
    name: "OpenAI's list is another catalog",
    caughtBy: "compatibility.one-catalog",
    answer: when(/^\/v1\/models$/, 200, replaceText(/"id":"/g, '"id":"x-')),
  },
  {
    name: "OpenAI's errors are problems",
    caughtBy: "compatibility.openai-errors",
    answer: when(/^\/v1\//, 404, (answered) => ({ ...answered, body: '{"type":"about:blank"}' })),
  },
  {
    name: "a chat does not end with [DONE]",
    caughtBy: "compatibility.chat",
    block: (block) => (block === "data: [DONE]" ? [] : [block]),
  },
  {
    name: "Ollama's lines are one document",
    caughtBy: "compatibility.ollama",
    answer: when(/api\/chat/, 200, (answered) => ({ ...answered, body: answered.body.split("\n")[0] ?? "" })),
  },
  {
    name: "a chat is not a Response",
    caughtBy: "compatibility.one-core",
    answer: when(/chat\/completions/, 200, withoutHeader("x-lmsp-response-id")),
  },
];

/** Sent by the proxy where the client sends none. */
export const faultToken = "first-token-of-the-tests";

type Change = (answered: Answered, asked: Asked) => Answered;

function isEnd(block: string): boolean {
  return /^event: response\.(completed|incomplete|failed|cancelled)$/m.test(block);
}

function plusOne(_all: string, word: string, digits: string): string {
  return `${word}${Number(digits) + 1}`;
}

function when(path: RegExp, status: number, change: Change): Change {
  return (answered, asked) => {
    const isMeant = path.test(asked.path.split("?")[0] ?? "") && answered.status === status;
    return isMeant ? change(answered, asked) : answered;
  };
}

function onProblems(change: Change): Change {
  return (answered, asked) =>
    answered.headers["content-type"]?.startsWith("application/problem+json") ? change(answered, asked) : answered;
}

function withStatus(status: number): Change {
  return (answered) => ({ ...answered, status });
}

function withType(type: string): Change {
  return (answered) => ({ ...answered, headers: { ...answered.headers, "content-type": type } });
}

function withoutHeader(name: string): Change {
  return (answered) => {
    const headers = Object.entries(answered.headers).filter(([known]) => known !== name);
    return { ...answered, headers: Object.fromEntries(headers) };
  };
}

function withMember(name: string, value: unknown): Change {
  return (answered) => withBody(answered, (body) => ({ ...body, [name]: value }));
}

function replaceText(pattern: RegExp, text: string): Change {
  return (answered) => ({ ...answered, body: answered.body.replaceAll(pattern, text) });
}

function withBody(answered: Answered, change: (body: Record<string, unknown>) => unknown): Answered {
  return { ...answered, body: JSON.stringify(change(JSON.parse(answered.body))) };
}

function doubled(list: unknown): unknown {
  return Array.isArray(list) ? [...list, ...list] : list;
}

function reversedLines(answered: Answered): Answered {
  return { ...answered, body: answered.body.trim().split("\n").reverse().join("\n") };
}

/** The service behind reads instead, and its answer looks as if it had been done. */
function toHarmless(path: RegExp): (asked: Asked) => Asked {
  return (asked) =>
    path.test(asked.path) ? { ...asked, method: "GET", path: asked.path.replace(path, ""), body: "" } : asked;
}

function deleteToGet(asked: Asked): Asked {
  return asked.method === "DELETE" && asked.path.includes("resp_")
    ? { ...asked, method: "GET", headers: { ...asked.headers, "x-was": "DELETE" } }
    : asked;
}

function onDelete(answered: Answered, asked: Asked): Answered {
  return asked.headers["x-was"] === "DELETE" ? { ...answered, status: 204 } : answered;
}

function withToken(asked: Asked): Asked {
  return { ...asked, headers: { ...asked.headers, authorization: `Bearer ${faultToken}` } };
}
