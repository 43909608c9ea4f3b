import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { WebSocket } from "ws";
import { connect as connectBrowser } from "../browser/index.ts";
import type { CarrierInfo } from "../session/carrier.ts";
import type { ClientConnection } from "../session/client/types.ts";
import { createServer } from "../session/server/server.ts";
import type { NnrpServer } from "../session/server/types.ts";
import { chooseRoute, connect } from "./connect.ts";
import { listen } from "./listen.ts";
import type { Listener, ServerTls } from "./types.ts";
import { acceptUpgrade, refuseUpgrade, UpgradeRefused } from "./websocket.ts";

const folder = mkdtempSync(join(tmpdir(), "nnrp-carriers-"));
const large = "x".repeat(3 * 1024 * 1024);
let server: NnrpServer;
let tls: ServerTls;
let carriers: CarrierInfo[];
const listeners: Listener[] = [];

beforeAll(() => {
  const file = (name: string) => readFileSync(new URL(`__fixtures__/${name}`, import.meta.url));
  tls = { key: file("key.pem"), cert: file("cert.pem") };
  carriers = [];
  server = createServer({
    open: ({ connection }) => {
      carriers.push(connection.carrier);
      return { accept: true };
    },
    operation(operation) {
      operation.partial(operation.payloads?.[0]?.bytes ?? "");
      operation.result({ event: large });
      return undefined;
    },
  });
});
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()));
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function listening(...words: Parameters<typeof listen> extends [unknown, ...infer Rest] ? Rest : never) {
  const listener = await listen(server, ...words);
  listeners.push(listener);
  return listener.endpoint;
}

/** Sends something large both ways, and closes in order. */
async function exchange(connection: ClientConnection): Promise<void> {
  const session = await connection.openSession();
  const types: string[] = [];
  for await (const event of session.submit({ body: { event: large } })) {
    types.push(event.type);
    if (event.type === "partial") expect(event.body.byteLength).toBe(large.length);
    if (event.type === "result") expect(event.payloads?.[0]?.bytes.byteLength).toBe(large.length);
  }
  expect(types).toEqual(["partial", "result"]);
  await session.close();
  await connection.close();
  expect(await connection.closed).toBeUndefined();
}

describe("carriers", () => {
  test("TCP", async () => exchange(await connect(await listening("tcp://127.0.0.1:0"))));

  test("TLS, with the certificate checked", async () => {
    const endpoint = await listening("tls://127.0.0.1:0", { tls });
    await exchange(await connect(endpoint, { tls: { ca: tls.cert, serverName: "localhost" } }));
    expect(carriers.at(-1)).toMatchObject({ kind: "tcp", secure: true });
    await expect(connect(endpoint)).rejects.toMatchObject({ code: "connect-failed" });
    await expect(listen(server, "tls://127.0.0.1:0")).rejects.toThrow("needs tls");
    await expect(listen(server, "tcp://127.0.0.1:0", { tls })).rejects.toThrow("takes no tls");
  });

  test("WebSocket, plain and with TLS; its upgrade is told", async () => {
    const endpoint = await listening("ws://127.0.0.1:0/nnrp");
    await exchange(await connect(`${endpoint}?key=1`, { headers: { authorization: "Bearer t" } }));
    expect(carriers.at(-1)?.upgrade).toMatchObject({ target: "/nnrp?key=1", headers: { authorization: "Bearer t" } });
    const secure = await listening("wss://127.0.0.1:0/nnrp", { tls });
    await exchange(await connect(secure, { tls: { ca: tls.cert } }));
    expect(carriers.at(-1)).toMatchObject({ kind: "websocket", secure: true });
  });

  test("a Unix socket is its owner's only, replaces a dead one, and leaves no file", async () => {
    const path = join(folder, "nnrp.sock");
    const endpoint = await listening(`unix://${path}`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await exchange(await connect(endpoint));
    expect(carriers.at(-1)).toMatchObject({ kind: "ipc", secure: false });
    await expect(listen(server, endpoint)).rejects.toThrow("EADDRINUSE");
    await exchange(await connect(endpoint));
    await listeners.pop()?.close();
    expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
    deadSocket(path);
    expect(statSync(path).isSocket()).toBe(true);
    await exchange(await connect(await listening(endpoint)));
    const file = join(folder, "a-file");
    writeFileSync(file, "mine");
    await expect(listen(server, `unix://${file}`)).rejects.toThrow("EADDRINUSE");
    expect(readFileSync(file, "utf8")).toBe("mine");
  });

  test("the platform's WebSocket, as browsers have it", async () => {
    /** Unlike an emitter, it does not throw what nobody hears. */
    class PlatformWebSocket extends WebSocket {
      constructor(url: string) {
        super(url);
        this.on("error", () => {});
      }
    }
    vi.stubGlobal("WebSocket", PlatformWebSocket);
    try {
      const endpoint = await listening("ws://127.0.0.1:0/nnrp");
      await exchange(await connectBrowser(endpoint));
      await expect(connectBrowser(endpoint.replace("/nnrp", "/other"))).rejects.toMatchObject({
        code: "connect-failed",
      });
      await expect(connectBrowser("tcp://127.0.0.1:1")).rejects.toThrow("ws://");
    } finally {
      vi.unstubAllGlobals();
    }
  });

  test("an upgrade of somebody's HTTP server, with a decision before it", async () => {
    const http = createHttpServer((_, response) => response.end("still here"));
    http.on("upgrade", (request, socket, head) => {
      if (request.headers.authorization === undefined) refuseUpgrade(socket, new UpgradeRefused(401));
      else acceptUpgrade(server, request, socket, head, { principal: "me" });
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const { port } = http.address() as AddressInfo;
    const endpoint = `ws://127.0.0.1:${port}/nnrp`;
    await exchange(await connect(endpoint, { headers: { authorization: "Bearer t" } }));
    expect(carriers.at(-1)?.attachment).toEqual({ principal: "me" });
    await expect(connect(endpoint)).rejects.toThrow("401");
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("still here");
    http.close();
    http.closeAllConnections();
  });

  test("a listener's own decision", async () => {
    const endpoint = await listening("ws://127.0.0.1:0/nnrp", {
      upgrade: (request) => {
        if (request.headers.origin !== "https://mine.example") throw new UpgradeRefused(403);
        return "welcome";
      },
    });
    await expect(connect(endpoint)).rejects.toThrow("403");
    const connection = await connect(endpoint, { headers: { origin: "https://mine.example" } });
    await connection.openSession();
    expect(carriers.at(-1)?.attachment).toBe("welcome");
    await connection.close();
  });
});

/** A socket file whose process died. */
function deadSocket(path: string): void {
  const script = `require("net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`;
  try {
    execFileSync(process.execPath, ["-e", script], { stdio: "ignore" });
  } catch {
    // It was killed.
  }
}

describe("connecting", () => {
  test("a service's port is taken without probing; several routes are probed", async () => {
    const tcp = await listening("tcp://127.0.0.1:0");
    const ws = await listening("ws://127.0.0.1:0/nnrp");
    await exchange(await connect(tcp.replace("tcp:", "nnrp:")));
    const chosen = await chooseRoute(tcp.replace("tcp:", "nnrp:"), { routes: [ws, "unix:///nowhere/nnrp.sock"] });
    expect(["tcp", "websocket"]).toContain(chosen.carrier);
    expect((await chooseRoute(tcp, { routes: [ws], policy: "force-websocket" })).carrier).toBe("websocket");
  });

  test("no route that is left tells each with its reason", async () => {
    const routes = ["unix:///nowhere/nnrp.sock", "ws://127.0.0.1:1/nnrp?token=hush"];
    const failure = chooseRoute("nnrps://127.0.0.1", { routes });
    await expect(failure).rejects.toThrow("unix:///nowhere/nnrp.sock: security-unsatisfied");
    await expect(failure).rejects.not.toThrow("hush");
    await expect(chooseRoute("nnrp://127.0.0.1", { routes })).rejects.toThrow("probe-failed");
    await expect(connect("nnrp://127.0.0.1")).rejects.toThrow("No route is left");
    await expect(connect("quic://127.0.0.1:1")).rejects.toThrow("local-unavailable");
  });

  test.each(["tcp://127.0.0.1:1", "ws://127.0.0.1:1/nnrp", "unix:///nowhere/nnrp.sock"])(
    "nobody at %s is a failure, and a signal gives it up",
    async (endpoint) => {
      await expect(connect(endpoint)).rejects.toMatchObject({ code: "connect-failed" });
      const given = connect(endpoint, { signal: AbortSignal.abort() });
      await expect(given).rejects.toMatchObject({ code: "cancelled" });
    },
  );
});
