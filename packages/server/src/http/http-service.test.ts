import { request as httpRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { connect } from "node:net";
import type { Core, CoreError } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel, testSha256, textAnswer } from "@plenum/core/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createTestDoor } from "../doors/lmsp/testing/create-test-door.ts";
import { HttpService, type HttpServiceOptions } from "./http-service.ts";

const door = createTestDoor({ interfaces: ({ origin }) => [{ kind: "lmsp", url: `${origin}/lmsp/v1` }] });

let backend: ScriptedBackend;
let core: Core;
let service: HttpService;
let problems: CoreError[];

async function start(
  options: Partial<HttpServiceOptions> = {},
  tokens: Parameters<typeof createTestCore>[0]["tokens"] = [],
) {
  backend = new ScriptedBackend("b", [scriptedModel("m")]);
  core = createTestCore({ backends: [backend], tokens });
  problems = [];
  service = new HttpService({
    core,
    doors: [door],
    host: "127.0.0.1",
    port: 0,
    hosts: [],
    corsOrigins: ["https://app.example"],
    requestBytes: 10_000,
    headerTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    operator: { isReady: () => true, metrics: async () => ({ contentType: "text/plain", text: "up 1\n" }) },
    onProblem: (error) => problems.push(error),
    onAnswered: () => {},
    ...options,
  });
  await service.listen();
}

beforeEach(() => start());
afterEach(() => service.close());

/** Runs until it is aborted. */
const waiting: ScriptedBackend["answer"] = async function* (_request, signal) {
  yield [{ type: "accepted" }];
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
};

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

function send(options: RequestOptions, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: "127.0.0.1", port: service.port, ...options }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

const post = { method: "POST", path: "/lmsp/v1/responses", headers: { "content-type": "application/json" } };
const hello = JSON.stringify({ model: "m", input: "Hi" });

describe("http service", () => {
  it("answers, with a request id of its own or the client's", async () => {
    const own = await send(post, hello);
    expect(own.status).toBe(200);
    expect(own.headers["x-request-id"]).toMatch(/^req_/);
    const sent = await send({ ...post, headers: { ...post.headers, "x-request-id": "abc-1" } }, hello);
    expect(sent.headers["x-request-id"]).toBe("abc-1");
    const odd = await send({ ...post, headers: { ...post.headers, "x-request-id": "a b" } }, hello);
    expect(odd.headers["x-request-id"]).toMatch(/^req_/);
  });

  it.each<[string, Record<string, string>]>([
    ["a foreign host", { host: "evil.example" }],
    ["a foreign origin", { origin: "https://evil.example" }],
    ["another site without an origin", { "sec-fetch-site": "cross-site" }],
  ])("refuses %s before the request is looked at", async (_name, headers) => {
    const answer = await send({ ...post, headers: { ...post.headers, ...headers } }, hello);
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.text).type).toBe("urn:lmsp:problem:host-refused");
    expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    expect(backend.requests).toHaveLength(0);
    expect((await send({ path: "/healthz", headers })).status).toBe(403);
  });

  it("lets an allowed page in, also without a token for the preflight, and lets it read errors (CORS-01)", async () => {
    await service.close();
    await start({}, [{ principal: "ann", sha256: testSha256("secret"), scopes: ["infer"] }]);
    const origin = "https://app.example";
    const preflight = await send({
      method: "OPTIONS",
      path: "/lmsp/v1/responses",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers["access-control-allow-origin"]).toBe(origin);
    expect(preflight.headers["access-control-allow-headers"]).toBe("authorization,content-type,x-stainless-os");
    expect(preflight.headers["vary"]).toContain("Origin");
    const refused = await send({ ...post, headers: { ...post.headers, origin } }, hello);
    expect(refused.status).toBe(401);
    expect(refused.headers["access-control-allow-origin"]).toBe(origin);
    expect(refused.headers["access-control-expose-headers"]).toContain("X-LMSP-Response-Id");
    const foreign = await send({
      method: "OPTIONS",
      path: "/lmsp/v1/responses",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect(foreign.headers["access-control-allow-origin"]).toBeUndefined();
  });

  it("refuses a body beyond the limit, with or without a length, and stays usable", async () => {
    const big = JSON.stringify({ model: "m", input: "x".repeat(20_000) });
    const answer = await send(post, big);
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.text)).toMatchObject({ type: "urn:lmsp:problem:request-too-large", limit: 10_000 });
    const chunked = await send({ ...post, headers: { ...post.headers, "transfer-encoding": "chunked" } }, big);
    expect(chunked.status).toBe(413);
    expect((await send(post, hello)).status).toBe(200);
  });

  it.each(["/lmsp/v1/nothing", "/other", "/lmsp/v1/models/%ZZ"])("answers the unknown path %s", async (path) => {
    const answer = await send({ path });
    expect(answer.status).toBe(404);
    expect(answer.headers["content-type"]).toBe("application/problem+json");
  });

  it("survives nonsense on the wire", async () => {
    for (const bytes of [
      "nonsense\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "\0\0\0",
      "POST /lmsp/v1/responses HTTP/1.1\r\nContent-Length: 5\r\n",
    ]) {
      await new Promise<void>((resolve) => {
        const socket = connect(service.port, "127.0.0.1", () => socket.end(bytes));
        socket.on("error", () => {});
        socket.resume();
        socket.on("close", () => resolve());
      });
    }
    expect((await send(post, hello)).status).toBe(200);
  });

  it("closes a connection whose request does not come", async () => {
    await service.close();
    await start({ headerTimeoutMs: 300, idleTimeoutMs: 300 });
    const answers = [
      "POST /lmsp/v1/responses HTTP/1.1\r\nHost: localhost\r\n",
      `POST /lmsp/v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{`,
    ].map(
      (bytes) =>
        new Promise<string>((resolve) => {
          let text = "";
          const socket = connect(service.port, "127.0.0.1", () => socket.write(bytes));
          socket.on("data", (chunk: Buffer) => {
            text += chunk.toString();
          });
          socket.on("error", () => {});
          socket.on("close", () => resolve(text));
        }),
    );
    for (const text of await Promise.all(answers)) expect(text).toMatch(/^(HTTP\/1\.1 408 |$)/);
    expect((await send(post, hello)).status).toBe(200);
  }, 60_000);

  it("hears a client that goes away with requests behind one another on its connection", async () => {
    backend.answer = waiting;
    const body = JSON.stringify({ model: "m", input: "Hi", on_disconnect: "cancel" });
    const bytes = `POST /lmsp/v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const socket = connect(service.port, "127.0.0.1", () => socket.write(bytes.repeat(3)));
    socket.on("error", () => {});
    await expect.poll(() => core.responses.active).toBe(3);
    socket.destroy();
    await expect.poll(() => core.responses.active).toBe(0);
    expect(backend.running).toBe(0);
  });

  it("closes the connection of a client that takes nothing of its stream", async () => {
    await service.close();
    await start({ idleTimeoutMs: 300, requestBytes: 10_000 });
    backend.answer = textAnswer(Array.from({ length: 3_000 }, () => "x".repeat(2_000)));
    const body = JSON.stringify({ model: "m", input: "Hi", stream: true });
    const socket = connect(service.port, "127.0.0.1", () => {
      socket.pause();
      socket.write(
        `POST /lmsp/v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    });
    socket.on("error", () => {});
    await expect.poll(() => backend.requests.length).toBe(1);
    await expect.poll(() => service.connections(), { timeout: 5_000 }).toBe(0);
    socket.destroy();
  });

  it("lets a stream that is under way leave whole when it closes", async () => {
    let open: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    backend.answer = async function* () {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "before " }];
      await gate;
      yield [
        { type: "text", candidate: 0, delta: "after" },
        { type: "finish", candidate: 0, finishReason: "stop" },
      ];
    };
    const answer = send({ ...post, headers: { ...post.headers, accept: "text/event-stream" } }, hello);
    await expect.poll(() => backend.running).toBe(1);
    const closed = core.close(5_000).then(() => service.close());
    open();
    expect((await answer).text).toContain("event: response.completed");
    await closed;
  });

  it("answers HEAD as GET without the body", async () => {
    for (const path of ["/healthz", "/readyz", "/lmsp/v1/models"]) {
      expect(await send({ method: "HEAD", path })).toMatchObject({ status: 200, text: "" });
    }
  });

  it.each<[string, RequestOptions, number]>([
    ["the absolute form of an address", { path: "http://127.0.0.1/lmsp/v1/models" }, 200],
    ["a media type that is none", { ...post, headers: { "content-type": ";;;" } }, 415],
    ["an address that can't be decoded, from a foreign host", { path: "/%zz", headers: { host: "evil.example" } }, 403],
  ])("takes %s for what it is", async (_name, options, status) => {
    expect((await send(options, options.method === "POST" ? hello : undefined)).status).toBe(status);
  });

  it("tells nothing of a body that is no JSON to the log", async () => {
    await send(post, '{"model": my PIN is 1234}');
    expect(problems).toHaveLength(1);
    expect(problems[0]?.cause).toBeUndefined();
    expect(problems[0]?.detail).not.toContain("PIN");
  });

  it("hears a client that goes away: streaming, waiting for the whole, queued", async () => {
    backend.setModels([scriptedModel("m", { limits: { parallel: 2 } })]);
    backend.answer = waiting;
    const begin = (body: object) => {
      const sent = httpRequest({ host: "127.0.0.1", port: service.port, ...post });
      sent.on("error", () => {});
      sent.end(JSON.stringify({ model: "m", input: "Hi", on_disconnect: "cancel", ...body }));
      return sent;
    };
    const clients = [begin({ stream: true }), begin({}), begin({}), begin({ stream: true })];
    await expect.poll(() => core.responses.active).toBe(4);
    expect(core.scheduler).toMatchObject({ running: 2, queued: 2 });
    for (const client of clients) client.destroy();
    await expect.poll(() => core.responses.active).toBe(0);
    expect(core.scheduler).toMatchObject({ running: 0, queued: 0 });
    expect(backend).toMatchObject({ running: 0, aborted: 2 });
    await expect.poll(() => service.connections()).toBe(0);
  });

  it("says how it is, and gives metrics to whom may read", async () => {
    expect(await send({ path: "/healthz" })).toMatchObject({ status: 200, text: '{"status":"ok"}' });
    expect(await send({ path: "/readyz" })).toMatchObject({ status: 200, text: '{"status":"ready"}' });
    expect(await send({ path: "/metrics" })).toMatchObject({ status: 200, text: "up 1\n" });
    await service.close();
    await start(
      { operator: { isReady: () => false, metrics: async () => ({ contentType: "text/plain", text: "" }) } },
      [{ principal: "ann", sha256: testSha256("secret"), scopes: ["read"] }],
    );
    expect((await send({ path: "/readyz" })).status).toBe(503);
    expect((await send({ path: "/metrics" })).status).toBe(401);
    expect((await send({ path: "/metrics", headers: { authorization: "Bearer secret" } })).status).toBe(200);
    expect((await send({ path: "/healthz" })).status).toBe(200);
  });

  it("streams as it comes, one write for what one tick brings", async () => {
    backend.answer = textAnswer(Array.from({ length: 50 }, (_, index) => String(index)));
    const answer = await send({ ...post, headers: { ...post.headers, accept: "text/event-stream" } }, hello);
    expect(answer.headers["content-type"]).toContain("text/event-stream");
    expect(answer.text.match(/event: response.output_text.delta/g)).toHaveLength(50);
    expect(problems).toEqual([]);
  });

  it("tells the address from the checked host, or the public one", async () => {
    const document = await send({ path: "/.well-known/lmsp", headers: { host: "studio.local:1234" } });
    expect(JSON.parse(document.text).interfaces[0].url).toBe("http://studio.local:1234/lmsp/v1");
    await service.close();
    await start({ publicUrl: "https://models.example" });
    const published = await send({ path: "/.well-known/lmsp" });
    expect(JSON.parse(published.text).interfaces[0].url).toBe("https://models.example/lmsp/v1");
  });
});
