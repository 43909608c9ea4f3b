import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent, request as httpsRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { promisify } from "node:util";
import type { Core } from "@plenum/core";
import { createTestCore, ScriptedBackend, scriptedModel } from "@plenum/core/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestDoor } from "../doors/lmsp/testing/create-test-door.ts";
import { readTlsPair } from "../tls-files.ts";
import { HttpService, type HttpServiceOptions } from "./http-service.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-https-"));
  for (const name of ["one", "two"]) {
    const files = ["-keyout", join(folder, `${name}.key`), "-out", join(folder, `${name}.crt`)];
    const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    await promisify(execFile)("openssl", ["req", ...kind, ...files, ...subject]);
  }
});
afterAll(() => rm(folder, { recursive: true }));

const filesOf = (name: string) => ({ cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) });

let core: Core;
let backend: ScriptedBackend;
let service: HttpService;

async function start(options: Partial<HttpServiceOptions> = {}) {
  backend = new ScriptedBackend("b", [scriptedModel("m")]);
  core = createTestCore({ backends: [backend] });
  const door = createTestDoor({
    interfaces: ({ origin, isLocal }) => [{ kind: "lmsp", url: `${origin}/lmsp/v1 ${isLocal}` }],
  });
  service = new HttpService({
    core,
    doors: [door],
    host: "127.0.0.1",
    port: 0,
    hosts: ["models.example"],
    corsOrigins: [],
    requestBytes: 10_000,
    headerTimeoutMs: 5_000,
    idleTimeoutMs: 5_000,
    operator: { isReady: () => true, metrics: async () => ({ contentType: "text/plain", text: "up 1\n" }) },
    onProblem: () => {},
    onAnswered: () => {},
    ...options,
  });
  await service.listen();
}
afterEach(() => service.close());

describe("HTTPS", () => {
  beforeEach(() => start({ tls: readTlsPair(filesOf("one")) }));

  const handshake = async (): Promise<TLSSocket> => {
    const ca = [await readFile(filesOf("one").cert), await readFile(filesOf("two").cert)];
    const socket = connect({ host: "127.0.0.1", port: service.port, ca, servername: "localhost" });
    await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
    return socket;
  };
  const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN;
  const text = (socket: TLSSocket, until: string): Promise<string> =>
    new Promise((resolve) => {
      let all = "";
      socket.on("data", (chunk: Buffer) => {
        all += chunk.toString();
        if (all.includes(until)) resolve(all);
      });
    });

  it("answers, and tells addresses with https", async () => {
    const ca = await readFile(filesOf("one").cert);
    const body = await new Promise<string>((resolve, reject) => {
      const options = { host: "127.0.0.1", port: service.port, path: "/.well-known/lmsp", ca, agent: new Agent() };
      httpsRequest(options, (answer) => {
        let all = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => {
          all += chunk;
        });
        answer.on("end", () => resolve(all));
      })
        .on("error", reject)
        .end();
    });
    expect(JSON.parse(body)).toMatchObject({
      interfaces: [{ url: `https://127.0.0.1:${service.port}/lmsp/v1 true` }],
      features: { idempotency: true },
    });
  });

  it("takes a new certificate for new connections while a stream goes on over an old one", async () => {
    let open = (): void => {};
    backend.answer = async function* () {
      yield [{ type: "accepted" }, { type: "text", candidate: 0, delta: "before" }];
      await new Promise<void>((resolve) => {
        open = resolve;
      });
      yield [
        { type: "text", candidate: 0, delta: "after" },
        { type: "finish", candidate: 0, finishReason: "stop" },
      ];
    };
    const streaming = await handshake();
    expect(nameOf(streaming)).toBe("one");
    const started = text(streaming, "before");
    const ended = text(streaming, "response.completed");
    const request = JSON.stringify({ model: "m", input: "Hi", stream: true });
    streaming.write(
      `POST /lmsp/v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${request.length}\r\n\r\n${request}`,
    );
    await started;
    service.renew(readTlsPair(filesOf("two")));
    const later = await handshake();
    expect(nameOf(later)).toBe("two");
    later.destroy();
    open();
    expect(await ended).toContain("after");
    streaming.destroy();
  });

  it("gives back a request that asks for an upgrade that nobody takes", async () => {
    const upgrades = [{ path: "/nnrp", accept: () => expect.unreachable("nobody asked for it") }];
    await service.close();
    await start({ tls: readTlsPair(filesOf("one")), upgrades });
    const socket = await handshake();
    const answered = text(socket, "\r\n\r\n");
    socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n");
    expect(await answered).toMatch(/^HTTP\/1.1 200 /);
    socket.destroy();
  });
});

describe("trusted proxies", () => {
  const forwarded = {
    "x-forwarded-for": "203.0.113.7",
    "x-forwarded-proto": "https",
    "x-forwarded-host": "models.example",
  };
  const get = (path: string, headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${service.port}${path}`, { headers });

  it("clients are told addresses as the proxy has them, and are no local ones", async () => {
    await start({ trustedProxies: ["127.0.0.0/8"] });
    expect(await (await get("/.well-known/lmsp", forwarded)).json()).toMatchObject({
      interfaces: [{ url: "https://models.example/lmsp/v1 false" }],
    });
    const foreign = { ...forwarded, "x-forwarded-host": "evil.example" };
    expect((await get("/.well-known/lmsp", foreign)).status).toBe(403);
  });

  it("without them what was forwarded says nothing", async () => {
    await start();
    expect(await (await get("/.well-known/lmsp", forwarded)).json()).toMatchObject({
      interfaces: [{ url: `http://127.0.0.1:${service.port}/lmsp/v1 true` }],
    });
  });

  it("fairness goes by the client, not by the proxy", async () => {
    await start({ trustedProxies: ["127.0.0.1"] });
    const peers: string[] = [];
    const authenticate = core.authenticator.authenticate.bind(core.authenticator);
    core.authenticator.authenticate = (bearer, peer) => {
      peers.push(peer);
      return authenticate(bearer, peer);
    };
    await get("/lmsp/v1/models", forwarded);
    await get("/metrics", { "x-forwarded-for": "2001:db8::1" });
    expect(peers).toEqual(["203.0.113.7", "2001:db8::1"]);
  });
});
