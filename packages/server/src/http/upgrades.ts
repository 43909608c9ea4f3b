import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { ClientReader } from "./client-facts.ts";
import { refuseForeign } from "./cors.ts";
import type { HostRules } from "./host-check.ts";

/** Who takes WebSocket upgrades of a path. */
export interface UpgradeRoute {
  readonly path: string;
  accept(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/**
 * Gives upgrades to who takes them, under the rules that hold for requests. Whatever else asks for an upgrade (clients
 * that would rather speak HTTP/2 do so with every first request) is answered as the request that it is.
 */
export function addUpgrades(
  server: Server,
  routes: readonly UpgradeRoute[],
  rules: HostRules,
  clients: ClientReader,
): void {
  if (routes.length === 0) return;
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const route = isWebSocket(request) ? routes.find(({ path }) => path === pathOf(request)) : undefined;
    if (route !== undefined && isWelcome(request, rules, clients)) route.accept(request, socket, head);
    else serveWithoutUpgrade(server, request, socket, head);
  });
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return url.replace(/\?.*$/s, "");
}

function isWelcome(request: IncomingMessage, rules: HostRules, clients: ClientReader): boolean {
  const { headers } = request;
  const site = headers["sec-fetch-site"];
  try {
    refuseForeign(
      {
        host: clients.read(request).host,
        origin: headers.origin,
        secFetchSite: typeof site === "string" ? site : undefined,
      },
      rules,
    );
    return true;
  } catch {
    return false;
  }
}

/** Puts the request back before what is still to be read of it, without what asked for the upgrade. */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method = "GET", url = "/", httpVersion, rawHeaders } = request;
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (!forUpgrades.has(name.toLowerCase())) text += `${name}: ${rawHeaders[at + 1] ?? ""}\r\n`;
  }
  const isLast = /\bclose\b/i.test(request.headers.connection ?? "");
  text += `connection: ${isLast ? "close" : "keep-alive"}\r\n\r\n`;
  socket.unshift(Buffer.concat([Buffer.from(text, "latin1"), head]));
  // Of HTTPS, the one whose handshake is done.
  server.emit(socket instanceof TLSSocket ? "secureConnection" : "connection", socket);
}

const forUpgrades: ReadonlySet<string> = new Set(["connection", "upgrade", "http2-settings"]);
