import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, finalResponse, outputText } from "@plenum/client";
import { type BackendEvent, type BackendModel, CoreError, requestDefaults } from "@plenum/core";
import { ScriptedBackend, scriptedModel, testBackend, textAnswer } from "@plenum/core/testing";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createLmspBackend } from "../../packages/server/src/backends/lmsp/index.ts";
import { waitFor } from "./service.ts";

const home = mkdtemp(join(tmpdir(), "plenum-lmsp-runtime-"));
const closers: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(async () => rm(await home, { recursive: true, force: true }));

interface StartOptions {
  readonly name: string;
  readonly backends?: readonly ScriptedBackend[];
  readonly runtimes?: Readonly<Record<string, object>>;
  readonly port?: number;
}

/** A service with these runtimes and no others. */
async function start({ name, backends = [], runtimes = {}, port = 0 }: StartOptions): Promise<PlenumServer> {
  const config = await loadConfig({
    flags: { home: join(await home, name), port, starterModel: false, localRuntimes: false, logLevel: "silent" },
    preset: [
      { path: ["runtimes"], value: runtimes, origin: name },
      { path: ["embedded", "enabled"], value: false, origin: name },
    ],
    env: {},
  });
  const service = await createServer(config, { backends });
  await service.listen();
  return service;
}

async function startUntilEnd(options: StartOptions): Promise<PlenumServer> {
  const service = await start(options);
  closers.push(() => service.close({ drainMs: 0 }));
  return service;
}

const embedder = scriptedModel("e", {
  capabilities: { ...scriptedModel("e").capabilities, chat: false, embeddings: true },
});

/** Answers `Hello`, or goes on until it is stopped when it is asked with seed 1. */
function scripted(models: readonly BackendModel[] = [scriptedModel("m"), embedder]): ScriptedBackend {
  const backend = new ScriptedBackend("own", models);
  const brief = textAnswer(["Hel", "lo"]);
  backend.answer = async function* (request, signal) {
    if (request.sampling.seed !== 1) {
      yield* brief(request, signal);
      return;
    }
    yield [{ type: "accepted", inputTokens: 3 }];
    yield [{ type: "text", candidate: 0, delta: "a" }];
    await new Promise((_done, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
  };
  return backend;
}

let suiteService: PlenumServer | undefined;
afterAll(() => suiteService?.close({ drainMs: 0 }));

testBackend({
  name: "lmsp",
  chatModel: "m",
  embeddingModel: "e",
  endless: { sampling: { seed: 1 } },
  create: async () => {
    suiteService = await start({ name: "suite", backends: [scripted()] });
    // Addresses as people write them.
    return createLmspBackend({ id: "far", baseUrl: `${suiteService.url}/lmsp/v1/`, probeIntervalMs: 200 });
  },
});

/** Passes bytes on between a port of its own and a service, until it is told to cut every connection. */
async function proxyTo(service: PlenumServer) {
  const sockets = new Set<Socket>();
  let opened = 0;
  const { port } = new URL(service.url);
  const server: Server = createTcpServer((near) => {
    opened += 1;
    const far = connect(Number(port), "127.0.0.1");
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        cut();
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, cut, opened: () => opened };
}

function requestOf(changes: object = {}) {
  return {
    ...requestDefaults,
    model: "m",
    input: {
      kind: "items",
      items: [{ type: "message", role: "user", content: [{ type: "text", text: "Hi" }] }],
    },
    ...changes,
  } as const;
}

function textOf(events: readonly BackendEvent[]): string {
  return events.map((event) => (event.type === "text" ? event.delta : "")).join("");
}

describe("one service with another as its runtime", () => {
  it("tells the other's model as it is: capabilities, limits, details, parameters, and through whom", async () => {
    const details = { family: "llama", parameters: 135, quantization: "Q4", digest: `sha256:${"a".repeat(64)}` };
    const model = scriptedModel("m", {
      title: "A model",
      aliases: ["alias"],
      state: "available",
      emulated: ["structuredOutput"],
      limits: { contextTokens: 4096, outputTokens: 100, parallel: 7 },
      details,
      parameters: { top_k: "honoured", min_p: "refused" },
    });
    const far = await startUntilEnd({ name: "far", backends: [scripted([model])] });
    const near = await startUntilEnd({ name: "near", runtimes: { far: { kind: "lmsp", url: far.url } } });
    await near.core.catalog.ready;
    const [told] = near.core.catalog.list();
    const { createdAtMs, name, ...wanted } = model;
    expect(told).toMatchObject({ ...wanted, id: name, runtimes: [{ id: "far", kind: "lmsp" }] });
    const client = createClient({ baseUrl: far.url });
    const { service } = await client.service();
    expect(told?.runtimes[0]?.via).toEqual([service.id]);
    expect(told?.createdAtMs).toBe(createdAtMs);
    const listed = await createClient({ baseUrl: near.url }).models.get("m");
    expect(listed).toMatchObject({ id: "m", state: "available", limits: { parallel: 7 }, details });
  });

  it("answers through it, and a cancel here is a cancel there", async () => {
    const backend = scripted();
    const far = await startUntilEnd({ name: "far", backends: [backend] });
    const near = await startUntilEnd({ name: "near", runtimes: { far: { kind: "lmsp", url: far.url } } });
    const client = createClient({ baseUrl: near.url });
    const last = await finalResponse(client.responses.stream({ model: "m", input: "hi" }));
    expect(last && outputText(last)).toBe("Hello");
    expect(last).toMatchObject({ runtime: "far", usage: { input_tokens: 3, output_tokens: 2 } });
    const abort = new AbortController();
    let abortedAtMs = 0;
    const reading = (async () => {
      for await (const event of client.responses.stream(
        { model: "m", input: "hi", sampling: { seed: 1 } },
        { signal: abort.signal },
      )) {
        if (event.type !== "response.output_text.delta") continue;
        abortedAtMs = performance.now();
        abort.abort();
      }
    })();
    await expect(reading).rejects.toThrow();
    await waitFor(() => (backend.aborted === 1 ? true : undefined), 10_000);
    process.stdout.write(
      `measured: abort here to abort there, two services: ${(performance.now() - abortedAtMs).toFixed(1)} ms\n`,
    );
    const { data } = await createClient({ baseUrl: far.url }).responses.list();
    expect(data.map(({ status }) => status).sort()).toEqual(["cancelled", "completed"]);
  });

  it("measures a cancel of the backend alone, at every moment of an answer's beginning", async () => {
    const own = scripted();
    const far = await startUntilEnd({ name: "far", backends: [own] });
    const backend = createLmspBackend({ id: "far", baseUrl: far.url });
    closers.push(() => backend.close());
    await backend.ready;
    const took: number[] = [];
    for (let round = 0; round < 30; round += 1) {
      const abort = new AbortController();
      const reason = new CoreError("cancelled", "enough");
      const running = backend.respond(requestOf({ sampling: { seed: 1 } }), () => {}, abort.signal);
      // From before the request has left to after its first output.
      if (round % 3 > 0) await new Promise((resolve) => setTimeout(resolve, round));
      const before = performance.now();
      abort.abort(reason);
      await expect(running).rejects.toBe(reason);
      took.push(performance.now() - before);
      expect(own.running).toBe(0);
    }
    took.sort((a, b) => a - b);
    process.stdout.write(
      `measured: abort to free slot there: median ${took[15]?.toFixed(1)} ms, longest ${took.at(-1)?.toFixed(1)} ms\n`,
    );
  });

  it("goes on by itself after lost connections: not one piece lost or repeated", async () => {
    const pieces = Array.from({ length: 40 }, (_, place) => ` ${place}`);
    const own = new ScriptedBackend("own", [scriptedModel("m")]);
    let pushed = 0;
    let goOn: () => void = () => {};
    own.answer = async function* () {
      yield [{ type: "accepted", inputTokens: 1 }];
      for (const delta of pieces) {
        yield [{ type: "text", candidate: 0, delta }];
        pushed += 1;
        if (pushed % 8 === 0) await new Promise<void>((resolve) => (goOn = resolve));
      }
      yield* [...(textAnswer([])({} as never, new AbortController().signal) as Iterable<BackendEvent[]>)].slice(1);
    };
    const far = await startUntilEnd({ name: "far", backends: [own] });
    const proxy = await proxyTo(far);
    const backend = createLmspBackend({ id: "far", baseUrl: proxy.url });
    closers.push(() => backend.close());
    await backend.ready;
    const events: BackendEvent[] = [];
    let cuts = 0;
    const sink = (batch: readonly BackendEvent[]): void => {
      events.push(...batch);
      const arrived = events.filter(({ type }) => type === "text").length;
      if (arrived !== pushed || arrived % 8 !== 0) return;
      cuts += 1;
      proxy.cut();
      goOn();
    };
    await backend.respond(requestOf(), sink, new AbortController().signal);
    expect(textOf(events)).toBe(pieces.join(""));
    expect(events.filter(({ type }) => type === "accepted" || type === "finish" || type === "usage")).toHaveLength(3);
    expect(cuts).toBeGreaterThanOrEqual(4);
    expect(own.requests).toHaveLength(1);
    process.stdout.write(`measured: ${cuts} lost connections within one answer, ${proxy.opened()} opened\n`);
  });

  it("passes problems on as what they are", async () => {
    const own = scripted();
    own.answer = () => {
      throw new CoreError("context-length-exceeded", "Too long.", { limit: 10, requested: 20, param: "input" });
    };
    const far = await startUntilEnd({ name: "far", backends: [own] });
    const backend = createLmspBackend({ id: "far", baseUrl: far.url });
    closers.push(() => backend.close());
    await backend.ready;
    const signal = new AbortController().signal;
    await expect(backend.respond(requestOf(), () => {}, signal)).rejects.toMatchObject({
      code: "context-length-exceeded",
      details: { limit: 10, requested: 20 },
    });
    await expect(backend.respond(requestOf({ sampling: { temperature: 9 } }), () => {}, signal)).rejects.toMatchObject({
      code: "invalid-request",
      details: { param: "sampling.temperature" },
    });
    await far.close({ drainMs: 0 });
    await expect(backend.respond(requestOf(), () => {}, signal)).rejects.toMatchObject({ code: "backend-unavailable" });
    await waitFor(() => (backend.health?.().state === "unavailable" ? true : undefined), 10_000);
    expect(backend.models()[0]?.stateDetail).toMatch(/^Runtime far /);
  });

  it("shows changes of the other's models at once", async () => {
    const own = scripted();
    const far = await startUntilEnd({ name: "far", backends: [own] });
    const backend = createLmspBackend({ id: "far", baseUrl: far.url, probeIntervalMs: 600_000 });
    closers.push(() => backend.close());
    await backend.ready;
    const before = performance.now();
    const seen = new Promise<void>((resolve) => {
      backend.onChange(() => {
        if (backend.models().some(({ name }) => name === "new")) resolve();
      });
    });
    // It listens once the stream's head has come.
    await new Promise((resolve) => setTimeout(resolve, 200));
    own.setModels([scriptedModel("new")]);
    await seen;
    process.stdout.write(
      `measured: a model there is seen here after ${Math.round(performance.now() - before - 200)} ms\n`,
    );
  });

  it("uses no service but the one that was meant, which alone gets the token", async () => {
    const far = await startUntilEnd({ name: "far", backends: [scripted()] });
    const backend = createLmspBackend({
      id: "far",
      baseUrl: far.url,
      apiKey: "secret-token",
      expectedServiceId: "00000000-0000-4000-8000-000000000000",
    });
    closers.push(() => backend.close());
    await backend.ready;
    expect(backend.models()).toEqual([]);
    expect(backend.health?.()).toMatchObject({
      state: "unavailable",
      reason: expect.stringContaining("another service"),
    });
    expect(JSON.stringify(backend.health?.())).not.toContain("secret");
  });
});

describe("services that serve each other's models", () => {
  async function freePort(): Promise<number> {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  const idsOf = (service: PlenumServer) =>
    service.core.catalog
      .list()
      .map(({ id }) => id)
      .sort();

  it("two: each model stands once in each catalog, and a request never comes back", async () => {
    const [a, b] = [await freePort(), await freePort()];
    const [one, two] = [
      new ScriptedBackend("own", [scriptedModel("x")]),
      new ScriptedBackend("own", [scriptedModel("y")]),
    ];
    const left = await startUntilEnd({
      name: "a",
      port: a,
      backends: [one],
      runtimes: { b: { kind: "lmsp", url: `http://127.0.0.1:${b}` } },
    });
    const right = await startUntilEnd({
      name: "b",
      port: b,
      backends: [two],
      runtimes: { a: { kind: "lmsp", url: `http://127.0.0.1:${a}` } },
    });
    const both = () => (idsOf(left).length === 2 && idsOf(right).length === 2 ? true : undefined);
    await waitFor(both, 40_000);
    // Two more looks on each side bring nothing new.
    for (let round = 0; round < 2; round += 1) {
      one.setModels([...one.models()]);
      two.setModels([...two.models()]);
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(idsOf(left)).toEqual(["x", "y"]);
      expect(idsOf(right)).toEqual(["x", "y"]);
    }
    for (const [service, model] of [
      [left, "y"],
      [right, "x"],
    ] as const) {
      const answer = await createClient({ baseUrl: service.url }).responses.create({ model, input: "hi" });
      expect(outputText(answer)).toBe("Hello");
    }
    const body = JSON.stringify({ model: "y", input: "hi" });
    const { service } = await createClient({ baseUrl: right.url }).service();
    const headers = { "content-type": "application/json", "x-lmsp-via": service.id };
    const refused = await fetch(`${left.url}/lmsp/v1/responses`, { method: "POST", headers, body });
    expect(refused.status).toBe(404);
    expect(await refused.json()).toMatchObject({ type: "urn:lmsp:problem:model-not-found" });
    expect(two.requests).toHaveLength(1);
  });

  it("a model that both have goes to the one that has it, not round in a circle", async () => {
    const [a, b] = [await freePort(), await freePort()];
    const details = { digest: `sha256:${"b".repeat(64)}` };
    const one = new ScriptedBackend("own", [scriptedModel("m", { details, state: "available" })]);
    const two = new ScriptedBackend("own", [scriptedModel("m", { details, state: "available" })]);
    const left = await startUntilEnd({
      name: "a2",
      port: a,
      backends: [one],
      runtimes: { b: { kind: "lmsp", url: `http://127.0.0.1:${b}` } },
    });
    const right = await startUntilEnd({
      name: "b2",
      port: b,
      backends: [two],
      runtimes: { a: { kind: "lmsp", url: `http://127.0.0.1:${a}` } },
    });
    const joined = (service: PlenumServer) => service.core.catalog.list()[0]?.runtimes.length === 2;
    await waitFor(() => (joined(left) && joined(right) ? true : undefined), 40_000);
    expect(idsOf(left)).toEqual(["m"]);
    for (const service of [left, right]) {
      const answer = await createClient({ baseUrl: service.url }).responses.create({ model: "m", input: "hi" });
      expect(outputText(answer)).toBe("Hello");
    }
    expect(one.requests.length + two.requests.length).toBe(2);
  });

  it("three in a ring: every model once, reached from every one of them", async () => {
    const ports = [await freePort(), await freePort(), await freePort()];
    const services: PlenumServer[] = [];
    for (const [place, port] of ports.entries()) {
      const next = ports[(place + 1) % 3];
      services.push(
        await startUntilEnd({
          name: `ring${place}`,
          port,
          backends: [new ScriptedBackend("own", [scriptedModel(`m${place}`)])],
          runtimes: { next: { kind: "lmsp", url: `http://127.0.0.1:${next}` } },
        }),
      );
    }
    const complete = () => (services.every((service) => idsOf(service).length === 3) ? true : undefined);
    await waitFor(complete, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    for (const service of services) {
      expect(idsOf(service)).toEqual(["m0", "m1", "m2"]);
      for (const model of idsOf(service)) {
        const answer = await createClient({ baseUrl: service.url }).responses.create({ model, input: "hi" });
        expect(outputText(answer)).toBe("Hello");
      }
    }
  });

  it("a service that is its own runtime says so", async () => {
    const port = await freePort();
    const service = await startUntilEnd({
      name: "self",
      port,
      backends: [scripted()],
      runtimes: { me: { kind: "lmsp", url: `http://127.0.0.1:${port}` } },
    });
    const own = () => service.core.runtimes.list().find(({ id }) => id === "me");
    const reason = await waitFor(
      () => (own()?.reason?.includes("this service itself") ? own()?.reason : undefined),
      20_000,
    );
    expect(reason).toMatch(/^Runtime me is this service itself; /);
    expect(idsOf(service)).toEqual(["e", "m"]);
  });
});

describe("runtimes at run time, by the native interface", () => {
  it("are added, serve at once, are told without secrets, are kept, and are removed", async () => {
    const far = await startUntilEnd({ name: "far", backends: [scripted()] });
    const near = await startUntilEnd({ name: "near" });
    const { runtimes, models, responses } = createClient({ baseUrl: near.url });
    const added = await runtimes.add({ id: "far", kind: "lmsp", url: `${far.url}/`, api_key: "secret-token" });
    expect(added).toMatchObject({
      id: "far",
      kind: "lmsp",
      url: far.url,
      state: "healthy",
      models: ["m", "e"],
      running: 0,
      capacity: 8,
      source: "added",
    });
    const all = await runtimes.list();
    expect(JSON.stringify(all)).not.toContain("secret");
    expect(outputText(await responses.create({ model: "m", input: "hi" }))).toBe("Hello");
    await expect(runtimes.add({ id: "far", kind: "ollama", url: far.url })).rejects.toMatchObject({ code: "conflict" });
    await runtimes.remove("far");
    expect((await models.list()).data).toEqual([]);
    await expect(runtimes.remove("far")).rejects.toMatchObject({ code: "not-found" });
  });

  it("of the configuration can't be removed", async () => {
    const far = await startUntilEnd({ name: "far", backends: [scripted()] });
    const near = await startUntilEnd({ name: "near", runtimes: { far: { kind: "lmsp", url: far.url } } });
    const { runtimes } = createClient({ baseUrl: near.url });
    expect((await runtimes.list()).data).toMatchObject([{ id: "far", source: "config", url: far.url }]);
    await expect(runtimes.remove("far")).rejects.toMatchObject({ code: "conflict" });
  });

  it.each<[string, object, string]>([
    ["no id", { kind: "lmsp", url: "http://127.0.0.1:1" }, "id"],
    ["an id with a slash", { id: "a/b", kind: "lmsp", url: "http://127.0.0.1:1" }, "id"],
    ["an unknown kind", { id: "a", kind: "magic", url: "http://127.0.0.1:1" }, "kind"],
    ["no URL", { id: "a", kind: "lmsp", url: "nonsense" }, "url"],
    ["a URL of another scheme", { id: "a", kind: "lmsp", url: "file:///etc/passwd" }, "url"],
    ["a key in the URL", { id: "a", kind: "lmsp", url: "http://user:key@127.0.0.1:1" }, "url"],
    ["a parallel of 0", { id: "a", kind: "lmsp", url: "http://127.0.0.1:1", parallel: 0 }, "parallel"],
    [
      "a header with a line break",
      { id: "a", kind: "lmsp", url: "http://127.0.0.1:1", headers: { x: "a\r\nb" } },
      "headers.x",
    ],
  ])("refuses %s", async (_name, body, param) => {
    const near = await startUntilEnd({ name: "bad" });
    const answer = await fetch(`${near.url}/lmsp/v1/runtimes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ type: "urn:lmsp:problem:invalid-request", param });
  });

  it("reads no environment of the service for whoever adds one", async () => {
    const near = await startUntilEnd({ name: "bad" });
    const answer = await fetch(`${near.url}/lmsp/v1/runtimes`, {
      method: "POST",
      headers: { "content-type": "application/json", prefer: "handling=strict" },
      body: JSON.stringify({ id: "a", kind: "lmsp", url: "http://127.0.0.1:1", api_key_env: "PATH" }),
    });
    expect(answer.status).toBe(400);
  });

  it("finds nobody nearby where nobody looks", async () => {
    const near = await startUntilEnd({ name: "near" });
    const { nearby } = createClient({ baseUrl: near.url });
    expect((await nearby.list()).data).toEqual([]);
    await expect(nearby.approve("x")).rejects.toMatchObject({ code: "not-found" });
  });
});
