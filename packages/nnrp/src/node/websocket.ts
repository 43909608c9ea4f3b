import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocket, type ClientOptions as WebSocketOptions, WebSocketServer } from "ws";
import type { Locator } from "../endpoint/endpoint.ts";
import { authority } from "../endpoint/endpoint.ts";
import type { Carrier } from "../session/carrier.ts";
import { NnrpError } from "../session/errors.ts";
import { defaultClientLimits } from "../session/limits.ts";
import type { NnrpServer } from "../session/server/types.ts";
import type { ConnectOptions } from "./types.ts";
import { WebSocketCarrier } from "./websocket-carrier.ts";

const acceptors = new WeakMap<NnrpServer, WebSocketServer>();

/** One acceptor for each server: it only does handshakes. */
function acceptorOf(server: NnrpServer): WebSocketServer {
  let acceptor = acceptors.get(server);
  if (acceptor === undefined) {
    acceptor = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: server.limits.frameBytes,
      handleProtocols: () => false,
    });
    acceptors.set(server, acceptor);
  }
  return acceptor;
}

const remoteOf = (socket: Duplex): string => {
  const { remoteAddress, remotePort } = socket as Socket;
  return remoteAddress === undefined ? "" : authority(remoteAddress, remotePort ?? 0);
};

/**
 * Takes over a WebSocket upgrade of an HTTP server and serves it. Whoever calls it has decided that the upgrade is
 * welcome; `attachment` becomes the carrier's.
 */
export function acceptUpgrade(
  server: NnrpServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  attachment?: unknown,
): void {
  socket.on("error", () => {});
  (socket as Partial<Socket>).setNoDelay?.(true);
  acceptorOf(server).handleUpgrade(request, socket, head, (webSocket) => {
    const secure = (socket as { encrypted?: boolean }).encrypted === true;
    const upgrade = { target: request.url ?? "/", headers: request.headers };
    server.accept(
      new WebSocketCarrier(webSocket, socket as Socket, { secure, remote: remoteOf(socket), upgrade, attachment }),
    );
  });
}

/** Thrown by an upgrade decision: the client gets this HTTP status instead of a WebSocket. */
export class UpgradeRefused extends Error {
  override readonly name = "UpgradeRefused";
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, headers: Readonly<Record<string, string>> = {}) {
    super(`The upgrade was refused with ${status}`);
    this.status = status;
    this.headers = headers;
  }
}

/** Answers an upgrade by an HTTP status. */
export function refuseUpgrade(socket: Duplex, refusal: UpgradeRefused): void {
  socket.on("error", () => {});
  const headers = Object.entries({ connection: "close", "content-length": "0", ...refusal.headers });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ""}\r\n${lines}\r\n`);
}

type WebSocketLocator = Extract<Locator, { carrier: "websocket" }>;

/** @throws {NnrpError} `connect-failed`, `cancelled`. */
export function openWebSocket(locator: WebSocketLocator, options: ConnectOptions): Promise<Carrier> {
  const { headers, tls, signal } = options;
  const limits = { ...defaultClientLimits, ...options.limits };
  const settings: WebSocketOptions = {
    perMessageDeflate: false,
    maxPayload: limits.frameBytes,
    handshakeTimeout: limits.connectMs,
    followRedirects: false,
    ...(headers === undefined ? {} : { headers: { ...headers } }),
    ...(tls?.ca === undefined ? {} : { ca: [tls.ca].flat() }),
    ...(tls?.serverName === undefined ? {} : { servername: tls.serverName }),
  };
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(locator.url, settings);
    const giveUp = () => {
      reject(new NnrpError("cancelled", "Connecting was given up", { cause: signal?.reason }));
      webSocket.terminate();
    };
    const fail = (error: Error) => {
      signal?.removeEventListener("abort", giveUp);
      reject(new NnrpError("connect-failed", `The WebSocket could not be opened: ${error.message}`, { cause: error }));
    };
    webSocket.on("error", fail);
    webSocket.once("upgrade", (response) => {
      response.socket.setNoDelay(true);
    });
    webSocket.once("open", () => {
      signal?.removeEventListener("abort", giveUp);
      webSocket.off("error", fail);
      const remote = authority(locator.host, locator.port);
      resolve(new WebSocketCarrier(webSocket, undefined, { secure: locator.secure, remote }));
    });
    if (signal?.aborted) giveUp();
    else signal?.addEventListener("abort", giveUp, { once: true });
  });
}
