import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { fetchServiceDocument } from "./service-document.ts";
import { serviceId } from "./testing/packets.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

const document = {
  lmsp_version: "1.0",
  service: { id: serviceId, name: "studio", software: { name: "plenum", version: "0.1.0" } },
  auth: { required: true, schemes: ["bearer"] },
  interfaces: [{ kind: "lmsp", url: "http://studio.local:7411/lmsp/v1", version: "1.0" }],
};

test("a document is read, without a token", async () => {
  let authorization: string | undefined = "none";
  const baseUrl = await serve((request, response) => {
    authorization = request.headers.authorization;
    response.end(JSON.stringify({ ...document, further: { anything: 1 } }));
  });
  expect(await fetchServiceDocument({ baseUrl })).toEqual(document);
  expect(authorization).toBeUndefined();
});

test("names that would control a terminal are made harmless", async () => {
  const service = { ...document.service, name: `\u001b[2Jstudio${"x".repeat(500)}` };
  const baseUrl = await serve((_request, response) => response.end(JSON.stringify({ ...document, service })));
  const read = await fetchServiceDocument({ baseUrl });
  expect(read?.service.name).toMatch(/^\[2Jstudiox+$/);
  expect(read?.service.name).toHaveLength(100);
});

describe("no document", () => {
  test.each<[string, RequestListener]>([
    ["another status", (_request, response) => response.writeHead(404).end(JSON.stringify(document))],
    ["a web page", (_request, response) => response.end("<html>")],
    ["JSON of another kind", (_request, response) => response.end("[1]")],
    ["no service", (_request, response) => response.end(JSON.stringify({ ...document, service: 1 }))],
    ["no interfaces", (_request, response) => response.end(JSON.stringify({ ...document, interfaces: {} }))],
    [
      "not LMSP's",
      (_request, response) => response.end(JSON.stringify({ ...document, interfaces: [{ kind: "x", url: "" }] })),
    ],
    [
      "another major version",
      (_request, response) => response.end(JSON.stringify({ ...document, lmsp_version: "2.0" })),
    ],
    ["a huge one", (_request, response) => response.end(JSON.stringify({ ...document, more: "x".repeat(100_000) }))],
    [
      "an endless one",
      (_request, response) => {
        const more = (): void => {
          while (response.write(" ".repeat(16_384)));
          response.once("drain", more);
        };
        more();
      },
    ],
    ["a head and nothing else", (_request, response) => response.flushHeaders()],
    ["silence", () => {}],
    [
      "a byte now and then",
      (_request, response) => {
        const timer = setInterval(() => response.write(" "), 20);
        response.once("close", () => clearInterval(timer));
      },
    ],
    ["a reset", (request) => request.socket.resetAndDestroy()],
  ])("%s", async (_name, listener) => {
    const baseUrl = await serve(listener);
    const before = performance.now();
    expect(await fetchServiceDocument({ baseUrl, timeoutMs: 300 })).toBeUndefined();
    process.stdout.write(`measured: ${_name}: given up after ${Math.round(performance.now() - before)} ms\n`);
  });

  test("a redirect: where it leads nobody is asked", async () => {
    const asked: unknown[] = [];
    const other = await serve((request, response) => {
      asked.push(request.url);
      response.end(JSON.stringify(document));
    });
    const baseUrl = await serve((request, response) =>
      response.writeHead(302, { location: `${other}${request.url}` }).end(),
    );
    expect(await fetchServiceDocument({ baseUrl })).toBeUndefined();
    expect(asked).toEqual([]);
  });

  test("nobody there, or no address", async () => {
    expect(await fetchServiceDocument({ baseUrl: "http://127.0.0.1:1" })).toBeUndefined();
    expect(await fetchServiceDocument({ baseUrl: "nonsense" })).toBeUndefined();
  });
});
