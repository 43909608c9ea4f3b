import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { connect } from "@plenum/nnrp/node";
import { createProfileClient, type ProfileClient } from "@plenum/profile";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "./config/index.ts";
import { createServer, type PlenumServer } from "./server.ts";

/** A whole service on every door, with a scripted backend and no configured token. */
let home: string;
let backend: ScriptedBackend;
let server: PlenumServer;

async function start(flags: Parameters<typeof loadConfig>[0]["flags"] = {}): Promise<void> {
  const config = await loadConfig({
    flags: { home, port: 0, starterModel: false, localRuntimes: false, ...flags },
    env: {},
    cwd: home,
    preset: [
      { path: ["embedded", "enabled"], value: false, origin: "test" },
      { path: ["discovery"], value: false, origin: "test" },
    ],
  });
  const { capabilities } = scriptedModel("x");
  backend = new ScriptedBackend("b", [
    scriptedModel("m", { limits: { contextTokens: 4096, parallel: 4 } }),
    scriptedModel("e", { capabilities: { ...capabilities, chat: false, embeddings: true } }),
  ]);
  server = await createServer(config, { backends: [backend], logger: pino({ level: "silent" }) });
  await server.listen();
}

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-tokens-"));
});
afterEach(async () => {
  await server.close({ drainMs: 0 });
  await rm(home, { recursive: true, force: true });
});

async function call(method: string, path: string, token?: string, body?: object): Promise<Response> {
  return await fetch(server.url + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

interface MadeToken {
  readonly id: string;
  readonly token: string;
}

async function makeToken(by: string | undefined, rights: object): Promise<MadeToken> {
  const answer = await call("POST", "/lmsp/v1/tokens", by, rights);
  expect(answer.status).toBe(201);
  expect(answer.headers.get("cache-control")).toBe("no-store");
  return (await answer.json()) as MadeToken;
}

const admin = { principal: "root", scopes: ["admin"] };
const user = { principal: "ann", scopes: ["read", "infer"] };
const messages = [{ role: "user", content: "Hi" }];

async function nnrp(token: string): Promise<ProfileClient> {
  const connection = await connect(`${server.url.replace(/^http/, "ws")}/nnrp`);
  return createProfileClient(await connection.openSession(), { authorization: `Bearer ${token}` });
}

/** One request on each door; the HTTP status that stands for its end. */
const doors: Readonly<Record<string, (token: string) => Promise<number>>> = {
  lmsp: async (token) => (await call("POST", "/lmsp/v1/responses", token, { model: "m", input: "Hi" })).status,
  openai: async (token) => (await call("POST", "/v1/chat/completions", token, { model: "m", messages })).status,
  "openai embeddings": async (token) =>
    (await call("POST", "/v1/embeddings", token, { model: "e", input: "Hi" })).status,
  ollama: async (token) => (await call("POST", "/api/chat", token, { model: "m", messages, stream: false })).status,
  "ollama embeddings": async (token) => (await call("POST", "/api/embed", token, { model: "e", input: "Hi" })).status,
  nnrp: async (token) => {
    const client = await nnrp(token);
    const chat = client.chat.stream({ model: "m", messages });
    try {
      for await (const _ of chat);
    } catch {
      // The end tells.
    }
    return chat.call.end?.status ?? 0;
  },
};

describe("tokens", () => {
  it("one that is made while the service runs holds on every door, until it is revoked", async () => {
    await start();
    const first = await call("POST", "/lmsp/v1/tokens", undefined, user);
    expect(first.status).toBe(409);
    expect(await first.json()).toMatchObject({
      type: "urn:lmsp:problem:conflict",
      param: "scopes",
      detail: expect.stringContaining("Make a token with the scope 'admin' first"),
    });
    const root = await makeToken(undefined, admin);
    expect((await call("GET", "/lmsp/v1/tokens")).status).toBe(401);
    const { id, token } = await makeToken(root.token, { ...user, name: "laptop" });
    for (const [door, ask] of Object.entries(doors)) expect([door, await ask(token)]).toEqual([door, 200]);
    expect((await call("GET", "/lmsp/v1/tokens", token)).status).toBe(403);
    const listed = await (await call("GET", "/lmsp/v1/tokens?principal=ann", root.token)).text();
    expect(JSON.parse(listed)).toMatchObject({ data: [{ id, principal: "ann", name: "laptop" }], next_cursor: null });
    expect(listed).not.toContain(token);
    expect((await call("DELETE", `/lmsp/v1/tokens/${id}`, root.token)).status).toBe(204);
    for (const [door, ask] of Object.entries(doors)) expect([door, await ask(token)]).toEqual([door, 401]);
    expect((await call("DELETE", `/lmsp/v1/tokens/${id}`, root.token)).status).toBe(404);
  });

  it("metrics, events and the catalog need one from the first one on; health and the service document do not", async () => {
    await start();
    const pages = ["/metrics", "/lmsp/v1/metrics", "/lmsp/v1/models", "/v1/models", "/api/tags"];
    for (const page of pages) expect([page, (await call("GET", page)).status]).toEqual([page, 200]);
    const root = await makeToken(undefined, admin);
    const { token } = await makeToken(root.token, { principal: "prometheus", scopes: ["read"] });
    for (const page of [...pages, "/lmsp/v1/events"]) {
      expect([page, (await call("GET", page)).status]).toEqual([page, 401]);
    }
    for (const page of pages) expect([page, (await call("GET", page, token)).status]).toEqual([page, 200]);
    expect((await call("GET", "/healthz")).status).toBe(200);
    expect(await (await call("GET", "/.well-known/lmsp")).json()).toMatchObject({ auth: { required: true } });
  });

  it("what is open ends with its token", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const { id, token } = await makeToken(root.token, user);
    const other = await makeToken(root.token, user);
    backend.answer = async function* (_request, signal) {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }];
      await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    const streams = await Promise.all([
      call("POST", "/lmsp/v1/responses", token, { model: "m", input: "Hi", stream: true, on_disconnect: "cancel" }),
      call("POST", "/v1/chat/completions", token, { model: "m", messages, stream: true }),
      call("GET", "/lmsp/v1/events", token),
    ]);
    const chat = (await nnrp(token)).chat.stream({ model: "m", messages });
    const events = chat[Symbol.asyncIterator]();
    await events.next();
    const stays = await call("POST", "/v1/chat/completions", other.token, { model: "m", messages, stream: true });
    await expect.poll(() => backend.running).toBe(4);
    expect((await call("DELETE", `/lmsp/v1/tokens/${id}`, root.token)).status).toBe(204);
    for (const stream of streams) await expect(stream.text()).rejects.toThrow();
    await expect(
      (async () => {
        while (!(await events.next()).done);
      })(),
    ).rejects.toMatchObject({ message: expect.stringContaining("revoked") });
    await expect.poll(() => backend.running).toBe(1);
    await stays.body?.cancel();
    await expect.poll(() => backend.running).toBe(0);
  });

  it("rotation gives the same rights, and the old one its grace", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const old = await makeToken(root.token, { ...user, models: ["m"], limits: { concurrency: 3, top_priority: 2 } });
    const answer = await call("POST", `/lmsp/v1/tokens/${old.id}/rotate`, root.token, { grace_s: 3_600 });
    expect(answer.status).toBe(201);
    const made = (await answer.json()) as MadeToken;
    expect(made).toMatchObject({ ...user, models: ["m"], limits: { concurrency: 3, top_priority: 2 } });
    const ask = (token: string) => call("GET", "/lmsp/v1/models/m", token);
    expect([(await ask(old.token)).status, (await ask(made.token)).status]).toEqual([200, 200]);
    expect((await call("POST", `/lmsp/v1/tokens/${made.id}/rotate`, root.token)).status).toBe(201);
    expect((await ask(made.token)).status).toBe(401);
  });

  it("principals: made, named, listed, gone with their tokens", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const made = await call("POST", "/lmsp/v1/principals", root.token, { id: "ann", name: "Ann" });
    expect([made.status, made.headers.get("location")]).toEqual([201, "/lmsp/v1/principals/ann"]);
    expect((await call("POST", "/lmsp/v1/principals", root.token, { id: "ann" })).status).toBe(409);
    expect((await call("POST", "/lmsp/v1/principals", root.token, { id: "a/b" })).status).toBe(400);
    const { token } = await makeToken(root.token, user);
    expect(await (await call("GET", "/lmsp/v1/principals", root.token)).json()).toMatchObject({
      data: [{ id: "ann", name: "Ann" }, { id: "root" }],
    });
    expect((await call("DELETE", "/lmsp/v1/principals/root", root.token)).status).toBe(409);
    expect((await call("DELETE", "/lmsp/v1/principals/ann", root.token)).status).toBe(204);
    expect((await call("GET", "/lmsp/v1/models", token)).status).toBe(401);
    // Who ends its own token is still answered; without any the service is open to this machine again.
    expect((await call("DELETE", "/lmsp/v1/principals/root", root.token)).status).toBe(204);
    expect((await call("GET", "/lmsp/v1/models")).status).toBe(200);
  });

  it.each([
    ["no scopes", { ...user, scopes: [] }, "scopes"],
    ["an unknown scope", { ...user, scopes: ["root"] }, "scopes[0]"],
    ["no principal", { scopes: ["read"] }, "principal"],
    ["an expiry in the past", { ...user, expires_at: "2001-01-01T00:00:00Z" }, "expires_at"],
    ["an expiry that is none", { ...user, expires_at: "soon" }, "expires_at"],
    ["a limit that is none", { ...user, limits: { requests_per_minute: "many" } }, "limits.requests_per_minute"],
    ["a limit below 0", { ...user, limits: { concurrency: -1 } }, "limits.concurrency"],
  ])("refuses %s by name", async (_name, rights, param) => {
    await start();
    const answer = await call("POST", "/lmsp/v1/tokens", undefined, rights);
    expect([answer.status, ((await answer.json()) as { param: string }).param]).toEqual([400, param]);
  });
});

describe("limits of a token", () => {
  it.each(Object.entries(doors))("requests a minute, through the %s door", async (_door, ask) => {
    await start();
    const root = await makeToken(undefined, admin);
    const limited = await makeToken(root.token, { ...user, limits: { requests_per_minute: 2 } });
    const free = await makeToken(root.token, user);
    expect([await ask(limited.token), await ask(limited.token), await ask(limited.token)]).toEqual([200, 200, 429]);
    expect(await ask(free.token)).toBe(200);
  });

  it("says when there is room again; what is refused counts nothing", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const { token } = await makeToken(root.token, { ...user, limits: { requests_per_minute: 1 } });
    const chat = { model: "m", messages };
    expect((await call("POST", "/v1/chat/completions", token, { ...chat, model: "none" })).status).toBe(404);
    expect((await call("POST", "/v1/chat/completions", token, { ...chat, temperature: 9 })).status).toBe(400);
    expect((await call("POST", "/v1/chat/completions", token, chat)).status).toBe(200);
    const refused = await call("POST", "/v1/chat/completions", token, chat);
    expect(refused.status).toBe(429);
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(50);
    expect(seconds).toBeLessThanOrEqual(61);
    expect(refused.headers.get("x-should-retry")).toBeNull();
    expect(await refused.json()).toMatchObject({ error: { type: "rate_limit_error", code: "rate_limit_exceeded" } });
    const native = await call("POST", "/lmsp/v1/responses", token, { model: "m", input: "Hi" });
    expect(await native.json()).toMatchObject({ type: "urn:lmsp:problem:rate-limited", limit: 1 });
  });

  it("tokens a minute count prompts and answers", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    // The scripted answer has 3 tokens of the prompt and 2 of its own, the vector 2.
    const { token } = await makeToken(root.token, { ...user, limits: { tokens_per_minute: 6 } });
    const ask = () => call("POST", "/lmsp/v1/responses", token, { model: "m", input: "Hi" });
    expect((await ask()).status).toBe(200);
    expect((await call("POST", "/api/embed", token, { model: "e", input: "Hi" })).status).toBe(200);
    expect((await ask()).status).toBe(429);
  });

  it("none at all is a quota that waiting does not help", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const { token } = await makeToken(root.token, { ...user, limits: { tokens_per_minute: 0 } });
    const refused = await call("POST", "/v1/chat/completions", token, { model: "m", messages });
    expect([refused.status, refused.headers.get("retry-after"), refused.headers.get("x-should-retry")]).toEqual([
      429,
      null,
      "false",
    ]);
    expect(await refused.json()).toMatchObject({ error: { code: "insufficient_quota" } });
  });

  it("responses at once; an end makes room", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const { token } = await makeToken(root.token, { ...user, limits: { concurrency: 1 } });
    let end = (): void => {};
    backend.answer = async function* () {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "a" }];
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      yield [{ type: "finish", candidate: 0, finishReason: "stop" }];
    };
    const chat = { model: "m", messages, stream: true };
    const first = await call("POST", "/v1/chat/completions", token, chat);
    const refused = await call("POST", "/v1/chat/completions", token, chat);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, null]);
    end();
    await first.text();
    const next = await call("POST", "/v1/chat/completions", token, chat);
    expect(next.status).toBe(200);
    end();
    await next.text();
  });

  it("models and the top priority", async () => {
    await start();
    const root = await makeToken(undefined, admin);
    const { token } = await makeToken(root.token, { ...user, models: ["m"], limits: { top_priority: -2 } });
    expect((await call("POST", "/v1/embeddings", token, { model: "e", input: "Hi" })).status).toBe(403);
    const answer = await call("POST", "/lmsp/v1/responses", token, { model: "m", input: "Hi", priority: 8 });
    expect(await answer.json()).toMatchObject({ priority: -2 });
  });
});

describe("a service that other machines can reach", () => {
  it("is never open: it makes the first token, which only its owner reads", async () => {
    await start({ host: "0.0.0.0" });
    const file = join(home, "admin-token");
    expect(server.madeTokenFile).toBe(file);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const token = (await readFile(file, "utf8")).trim();
    expect((await call("GET", "/lmsp/v1/models")).status).toBe(401);
    expect((await call("GET", "/lmsp/v1/tokens", token)).status).toBe(200);
    const listed = (await (await call("GET", "/lmsp/v1/tokens", token)).json()) as { data: { id: string }[] };
    const last = await call("DELETE", `/lmsp/v1/tokens/${listed.data[0]?.id}`, token);
    expect([last.status, ((await last.json()) as { detail: string }).detail]).toEqual([
      409,
      expect.stringContaining("make another token with the scope 'admin' first"),
    ]);
  });

  it("is open only when it is told to be", async () => {
    await start({ host: "0.0.0.0", insecureOpen: true });
    expect(server.madeTokenFile).toBeUndefined();
    expect((await call("GET", "/lmsp/v1/models")).status).toBe(200);
  });
});
