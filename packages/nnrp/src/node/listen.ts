import { chmodSync, rmSync, statSync } from "node:fs";
import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect, createServer as createSocketServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createServer as createTlsServer } from "node:tls";
import { authority, formatLocator, type Locator, parseEndpoint } from "../endpoint/endpoint.ts";
import type { NnrpServer } from "../session/server/types.ts";
import { StreamCarrier } from "./stream-carrier.ts";
import type { Listener, ListenOptions } from "./types.ts";
import { acceptUpgrade, refuseUpgrade, UpgradeRefused } from "./websocket.ts";

const socketOptions = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 30_000 };

/**
 * Listens on `tcp://host:port`, `tls://…`, `ws://host:port/path`, `wss://…`, `unix:///path` (mode 0600) or
 * `npipe://name`, and hands every carrier to the server. Port 0 takes a free one.
 *
 * @throws {TypeError} The endpoint or its options do not fit.
 * @throws {Error} The platform's: the address is in use, not permitted.
 */
export async function listen(server: NnrpServer, endpoint: string, options: ListenOptions = {}): Promise<Listener> {
  const parsed = parseEndpoint(endpoint);
  if (parsed.kind === "application") throw new TypeError(`${endpoint} names no carrier to listen on`);
  const { locator } = parsed;
  if (locator.secure !== (options.tls !== undefined)) {
    throw new TypeError(locator.secure ? `${endpoint} needs tls (key and cert)` : `${endpoint} takes no tls`);
  }
  switch (locator.carrier) {
    case "tcp":
      return listenTcp(server, locator, options);
    case "ipc":
      return listenIpc(server, locator);
    case "websocket":
      return listenWebSocket(server, locator, options);
    case "quic":
      throw new TypeError("QUIC is not available");
  }
}

async function listenTcp(
  server: NnrpServer,
  locator: Extract<Locator, { carrier: "tcp" }>,
  { tls }: ListenOptions,
): Promise<Listener> {
  const accept = (socket: Socket) => {
    const remote = socket.remoteAddress === undefined ? "" : authority(socket.remoteAddress, socket.remotePort ?? 0);
    server.accept(new StreamCarrier(socket, "tcp", locator.secure, remote));
  };
  const listener =
    tls === undefined
      ? createSocketServer(socketOptions, accept)
      : createTlsServer({ ...socketOptions, ...tls, handshakeTimeout: server.limits.handshakeMs }, accept);
  listener.on("tlsClientError", () => {});
  await bound(listener, () => listener.listen({ host: locator.host, port: locator.port }));
  const { port } = listener.address() as AddressInfo;
  return { endpoint: formatLocator({ ...locator, port }), renew: renewal(listener), close: () => closed(listener) };
}

async function listenIpc(server: NnrpServer, locator: Extract<Locator, { carrier: "ipc" }>): Promise<Listener> {
  const { path } = locator;
  const isFile = path.startsWith("/");
  if (isFile) await removeStaleSocket(path);
  const listener = createSocketServer((socket) => server.accept(new StreamCarrier(socket, "ipc", false, path)));
  await bound(listener, () => {
    const restore = isFile ? restrictNewFiles() : undefined;
    listener.listen({ path });
    restore?.();
  });
  if (isFile) chmodSync(path, 0o600);
  return { endpoint: formatLocator(locator), renew: renewal(listener), close: () => closed(listener) };
}

/** The socket's file is the owner's from its first moment. Worker threads cannot set this; the mode follows anyway. */
function restrictNewFiles(): (() => void) | undefined {
  try {
    const before = process.umask(0o177);
    return () => process.umask(before);
  } catch {
    return undefined;
  }
}

/** A file that nobody listens on any more is removed; any other is left, and binding fails. */
async function removeStaleSocket(path: string): Promise<void> {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined || !stats.isSocket()) return;
  const answered = await new Promise<boolean>((resolve) => {
    const socket = connect({ path });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
  if (!answered) rmSync(path, { force: true });
}

async function listenWebSocket(
  server: NnrpServer,
  locator: Extract<Locator, { carrier: "websocket" }>,
  options: ListenOptions,
): Promise<Listener> {
  const path = options.path ?? locator.target.replace(/\?.*$/s, "");
  const listener: HttpServer = options.tls === undefined ? createHttpServer() : createHttpsServer(options.tls);
  listener.headersTimeout = server.limits.handshakeMs;
  listener.on("request", (_, response) => response.writeHead(426, { connection: "close", upgrade: "websocket" }).end());
  listener.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {});
    const target = request.url ?? "/";
    if (path !== "/" && target.replace(/\?.*$/s, "") !== path) {
      refuseUpgrade(socket, new UpgradeRefused(404));
      return;
    }
    if (options.upgrade === undefined) {
      acceptUpgrade(server, request, socket, head);
      return;
    }
    const { upgrade } = options;
    const decide = async (): Promise<unknown> => upgrade(request);
    decide().then(
      (attachment) => acceptUpgrade(server, request, socket, head, attachment),
      (error: unknown) => refuseUpgrade(socket, error instanceof UpgradeRefused ? error : new UpgradeRefused(500)),
    );
  });
  await bound(listener, () => listener.listen({ host: locator.host, port: locator.port }));
  const { port } = listener.address() as AddressInfo;
  const close = () => {
    listener.closeIdleConnections();
    return closed(listener);
  };
  return { endpoint: formatLocator({ ...locator, port }), renew: renewal(listener), close };
}

function bound(listener: Server, listenNow: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    listener.once("listening", resolve).once("error", reject);
    listenNow();
  });
}

/** Node's servers with TLS, of HTTPS too, take new certificates for new connections. */
function renewal(listener: Server): Listener["renew"] {
  return (tls) => {
    if ("setSecureContext" in listener && typeof listener.setSecureContext === "function") {
      listener.setSecureContext(tls);
    }
  };
}

/** Open carriers stay; waiting for them is the server's part. */
function closed(listener: Server): Promise<void> {
  listener.close();
  return Promise.resolve();
}
