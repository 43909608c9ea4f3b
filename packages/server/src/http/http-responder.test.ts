import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { HttpResponder } from "./http-responder.ts";

let server: Server;

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Gives each request's responder away, in order. */
async function listen(stallTimeoutMs: number): Promise<(count: number) => Promise<readonly HttpResponder[]>> {
  const responders: HttpResponder[] = [];
  server = createServer((request: IncomingMessage, raw: ServerResponse) => {
    responders.push(new HttpResponder({ raw, socket: request.socket, baseHeaders: [], stallTimeoutMs }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return async (count) => {
    await expect.poll(() => responders.length).toBe(count);
    return responders;
  };
}

function send(text: string): Socket {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1", () => socket.write(text));
  return socket.on("error", () => {});
}

function connections(): Promise<number> {
  return new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
}

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const eventStream = { "content-type": "text/event-stream" };

describe("http responder", () => {
  it("keeps nothing of each time that a slow client has caught up", async () => {
    const received = await listen(60_000);
    const socket = send(get);
    socket.resume();
    const [responder] = await received(1);
    const warned = vi.fn();
    process.on("warning", warned);
    responder?.start(200, eventStream);
    const text = "x".repeat(1_000_000);
    for (let writes = 0; writes < 30; writes += 1) {
      const drained = new Promise<void>((resolve) => responder?.onDrain(resolve));
      if (responder?.write(text) === false) await drained;
    }
    responder?.end();
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", warned);
    expect(warned).not.toHaveBeenCalled();
    socket.destroy();
  });

  it("does not take a client for stalled whose answer waits behind another one", async () => {
    const received = await listen(50);
    const socket = send(get.repeat(2));
    let text = "";
    socket.setEncoding("utf8").on("data", (data: string) => {
      text += data;
    });
    const [first, second] = await received(2);
    first?.start(200, eventStream);
    second?.start(200, { "content-type": "application/json", "content-length": "2" });
    second?.end("{}");
    // The first one's client reads all the time.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(first?.isClosed).toBe(false);
    first?.end("data: 1\n\n");
    await expect.poll(() => text).toMatch(/data: 1\n\n\r\n0\r\n\r\n[\s\S]*\{\}$/);
  });

  it("closes the connection of a client that takes nothing of an answer that had to wait", async () => {
    const received = await listen(50);
    const socket = send(get.repeat(2));
    socket.pause();
    const [first, second] = await received(2);
    first?.start(200, eventStream);
    second?.start(200, { "content-type": "application/json" });
    second?.end("x".repeat(20_000_000));
    expect(await connections()).toBe(1);
    first?.end();
    await expect.poll(connections).toBe(0);
    socket.destroy();
  });

  it("leaves the connection of a client alone that takes a long answer slowly, and after it has taken all", async () => {
    const stallTimeoutMs = 500;
    const received = await listen(stallTimeoutMs);
    const socket = send(get);
    const [responder] = await received(1);
    // Each letter has two bytes, so that pieces end within letters.
    const text = `${"é".repeat(15_000_000)}!`;
    responder?.start(200, { "content-length": String(Buffer.byteLength(text)) });
    responder?.end(text);
    const startedAt = performance.now();
    let taken = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      taken += part;
      socket.pause();
      setTimeout(() => socket.resume(), 4);
    });
    await expect.poll(() => taken.endsWith("!"), { timeout: 30_000 }).toBe(true);
    expect(performance.now() - startedAt).toBeGreaterThan(stallTimeoutMs);
    expect(taken.endsWith(text)).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, stallTimeoutMs + 100));
    expect(await connections()).toBe(1);
    socket.destroy();
  }, 40_000);
});
