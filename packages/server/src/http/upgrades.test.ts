import { createServer, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ClientReader } from "./client-facts.ts";
import { addUpgrades } from "./upgrades.ts";

let server: Server;
let taken: string[];

beforeEach(async () => {
  taken = [];
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => response.end(`${request.method} ${request.url} ${body}|`));
  });
  const accept = (request: IncomingMessage, socket: Duplex) => {
    taken.push(request.url ?? "");
    socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  };
  addUpgrades(server, [{ path: "/nnrp", accept }], { hosts: [], corsOrigins: [] }, new ClientReader([]));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
});
afterEach(() => server.close());

/** Sends bytes as they are, in these pieces, and answers all that comes until the connection ends. */
function exchange(...pieces: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
    for (const piece of pieces) socket.write(piece);
  });
}

const upgrade = (path: string, further = "", host = "127.0.0.1") =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${further}\r\n`;

it("gives a WebSocket upgrade to who takes its path", async () => {
  expect(await exchange(upgrade("/nnrp?token=t"))).toMatch(/^HTTP\/1.1 101 /);
  expect(taken).toEqual(["/nnrp?token=t"]);
});

it.each([
  ["another path", upgrade("/v1/realtime", "Connection: close\r\n"), /GET \/v1\/realtime /],
  ["a foreign host", upgrade("/nnrp", "Connection: close\r\n", "evil.example"), /GET \/nnrp /],
  ["a foreign page", upgrade("/nnrp", "Origin: https://evil.example\r\nConnection: close\r\n"), /GET \/nnrp /],
  ["another site's page", upgrade("/nnrp", "Sec-Fetch-Site: cross-site\r\nConnection: close\r\n"), /GET \/nnrp /],
])("answers %s as the request that it is", async (_name, request, answer) => {
  expect(await exchange(request)).toMatch(answer);
  expect(taken).toEqual([]);
});

it("answers clients that would rather speak HTTP/2, with their bodies, and keeps their connection", async () => {
  const first =
    "POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
    "HTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 6\r\n\r\nabc";
  const second = "GET /b HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
  const text = await exchange(first, "def", second);
  expect(text.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
  expect(text).toContain("POST /a abcdef|");
  expect(text).toContain("GET /b |");
});
