import { expect, test } from "vitest";
import { createClient, LmspError, normalizeBaseUrl } from "./index.ts";
import { type Answer, fakeService, json, problem, response } from "./testing/fake-service.ts";

function clientOf(...answers: readonly Answer[]) {
  const service = fakeService(...answers);
  const client = createClient({ baseUrl: "http://host:1/", token: "secret", fetch: service.fetch });
  return { client, seen: service.seen };
}

type Client = ReturnType<typeof createClient>;

test.each([
  ["service", (client: Client) => client.service(), "GET http://host:1/.well-known/lmsp"],
  ["models.list", (client: Client) => client.models.list(), "GET http://host:1/lmsp/v1/models"],
  ["models.get", (client: Client) => client.models.get("a/b:c"), "GET http://host:1/lmsp/v1/models/a%2Fb%3Ac"],
  ["responses.get", (client: Client) => client.responses.get("resp_1"), "GET http://host:1/lmsp/v1/responses/resp_1"],
  ["responses.list", (client: Client) => client.responses.list(), "GET http://host:1/lmsp/v1/responses"],
  [
    "responses.list with a filter",
    (client: Client) => client.responses.list({ status: "failed", limit: 5 }),
    "GET http://host:1/lmsp/v1/responses?status=failed&limit=5",
  ],
  [
    "responses.cancel",
    (client: Client) => client.responses.cancel("resp_1"),
    "POST http://host:1/lmsp/v1/responses/resp_1/cancel",
  ],
])("%s", async (_name, call, sent) => {
  const { client, seen } = clientOf(json({ data: [] }));
  expect(await call(client)).toEqual({ data: [] });
  expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual([sent]);
  expect(seen[0]?.headers["authorization"]).toBe("Bearer secret");
});

test("responses.create sends the request without a stream", async () => {
  const { client, seen } = clientOf(json(response("completed", "hello")));
  expect(await client.responses.create({ model: "m", input: "hi" })).toMatchObject({ status: "completed" });
  expect(seen[0]).toMatchObject({ method: "POST", body: { model: "m", input: "hi", stream: false } });
});

test("responses.delete takes an answer without body", async () => {
  const { client, seen } = clientOf(() => new Response(null, { status: 204 }));
  await client.responses.delete("resp_1");
  expect(seen[0]).toMatchObject({ method: "DELETE", url: "http://host:1/lmsp/v1/responses/resp_1" });
});

async function errorOf(answer: Answer): Promise<LmspError> {
  const { client } = clientOf(answer);
  try {
    await client.models.list();
  } catch (error) {
    if (error instanceof LmspError) return error;
    throw error;
  }
  throw new Error("the call went through");
}

test("a problem becomes an error with its code and members", async () => {
  const error = await errorOf(problem("context-length-exceeded", 400, { limit: 8192, requested: 9000 }));
  expect(error).toMatchObject({
    code: "context-length-exceeded",
    status: 400,
    detail: "It is context-length-exceeded.",
    message: "It is context-length-exceeded.",
    problem: { limit: 8192, requested: 9000 },
  });
});

test.each([
  ["member", problem("overloaded", 503, { retry_after_ms: 1500 }), 1500],
  ["header", json({ type: "urn:lmsp:problem:overloaded" }, 503, { "retry-after": "2" }), 2000],
  ["none", problem("overloaded", 503), undefined],
])("tells when to come back: %s", async (_name, answer, ms) => {
  expect((await errorOf(answer)).retryAfterMs).toBe(ms);
});

test.each([
  ["HTML", () => new Response("<h1>Bad gateway</h1>", { status: 502 }), "Bad gateway"],
  ["another JSON", json({ error: { message: "no" } }, 404), "no"],
  ["nothing", () => new Response(null, { status: 500 }), "no text"],
] satisfies [string, Answer, string][])("an error that is no problem is shown: %s", async (_name, answer, excerpt) => {
  expect(await errorOf(answer)).toMatchObject({
    code: "invalid-answer",
    detail: expect.stringContaining(excerpt),
  });
});

test("an answer that is not JSON is refused", async () => {
  expect(await errorOf(() => new Response("hello"))).toMatchObject({ code: "invalid-answer", status: 200 });
});

test("no connection is `unreachable`, with the system's reason", async () => {
  const refused = () => {
    throw new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } });
  };
  expect(await errorOf(refused)).toMatchObject({
    code: "unreachable",
    status: 0,
    detail: "No service answers at http://host:1 (ECONNREFUSED).",
  });
});

test("an aborted call rejects with the signal's reason", async () => {
  const { client } = clientOf(({ signal }) => Promise.reject(signal?.reason));
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(client.models.list({ signal })).rejects.toThrow("enough");
});

test.each([
  ["127.0.0.1:7411", "http://127.0.0.1:7411"],
  ["https://a.example/", "https://a.example"],
  ["http://a/lmsp/v1/", "http://a"],
  ["http://a/prefix", "http://a/prefix"],
])("base URL %s", (written, url) => {
  expect(normalizeBaseUrl(written)).toBe(url);
});
