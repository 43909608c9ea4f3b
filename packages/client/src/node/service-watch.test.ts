import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { discover } from "./discover.ts";
import type { MulticastEvents } from "./multicast.ts";
import { type ServiceWatch, type WatchServicesOptions, watchServices } from "./service-watch.ts";
import { type Announced, announcement, serviceId } from "./testing/packets.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const otherId = "00000000-0000-4000-8000-00000000000b";

/** A service with this id. @returns its port, and how often it was asked */
async function serve(id = serviceId, name = "studio") {
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.end(
      JSON.stringify({
        lmsp_version: "1.0",
        service: { id, name },
        auth: { required: false },
        interfaces: [
          { kind: "lmsp", url: "http://elsewhere.example/lmsp/v1" },
          { kind: "openai", url: "" },
        ],
      }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { port, asked };
}

function watchWith(options: Partial<WatchServicesOptions> = {}) {
  let events: MulticastEvents | undefined;
  const watch = watchServices({
    accepts: () => true,
    open: (given) => {
      events = given;
      return { query: () => {}, close: () => {} };
    },
    ...options,
  });
  closers.push(() => watch.close());
  const hear = (announced: Announced) =>
    events?.onResponse({
      addresses: ["127.0.0.1"],
      ...announcement({ addresses: ["127.0.0.1"], ...announced }),
    } as never);
  return { watch, hear };
}

function until(watch: ServiceWatch, isSo: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!isSo()) return;
      leave();
      resolve();
    };
    const leave = watch.onChange(look);
    look();
  });
}

test("a service is told once it has answered under its id, and is gone with its goodbye", async () => {
  const { port, asked } = await serve();
  const { watch, hear } = watchWith();
  hear({ port });
  expect(watch.services()).toEqual([]);
  await until(watch, () => watch.services().length === 1);
  expect(watch.services()).toMatchObject([
    {
      id: serviceId,
      name: "studio",
      baseUrl: `http://127.0.0.1:${port}`,
      version: "1.0",
      auth: "none",
      kinds: ["lmsp", "openai"],
      isGone: false,
    },
  ]);
  expect(asked).toEqual(["/.well-known/lmsp"]);
  hear({ port, ttl: 0 });
  expect(watch.services()).toMatchObject([{ id: serviceId, isGone: true }]);
  hear({ port });
  await until(watch, () => watch.services()[0]?.isGone === false);
});

test("one that answers under another id is not told", async () => {
  const liar = await serve(otherId);
  const honest = await serve(serviceId);
  const { watch, hear } = watchWith();
  hear({ instance: "liar", host: "liar.local", port: liar.port });
  hear({ instance: "honest", host: "honest.local", port: honest.port });
  await until(watch, () => watch.services().length === 1);
  expect(watch.services()[0]?.baseUrl).toBe(`http://127.0.0.1:${honest.port}`);
});

test("one's own service is not asked", async () => {
  const own = await serve(serviceId, "own");
  const other = await serve(otherId, "other");
  const { watch, hear } = watchWith({ ownId: serviceId });
  hear({ instance: "own", host: "own.local", port: own.port });
  hear({ instance: "other", host: "other.local", port: other.port, txt: { id: otherId } });
  await until(watch, () => watch.services().length === 1);
  expect(watch.services()[0]?.name).toBe("other");
  expect(own.asked).toEqual([]);
});

test("a later one with the id of one that is there does not take its place", async () => {
  const first = await serve(serviceId, "first");
  const second = await serve(serviceId, "second");
  const { watch, hear } = watchWith();
  hear({ instance: "z-first", host: "first.local", port: first.port });
  await until(watch, () => watch.services().length === 1);
  hear({ instance: "a-second", host: "second.local", port: second.port });
  await expect.poll(() => second.asked.length).toBe(1);
  expect(watch.services().map(({ name }) => name)).toEqual(["first"]);
  hear({ instance: "z-first", host: "first.local", port: first.port, ttl: 0 });
  await until(watch, () => watch.services()[0]?.name === "second");
});

test("a service that moves is told at its new address", async () => {
  const before = await serve();
  const after = await serve();
  const { watch, hear } = watchWith();
  hear({ port: before.port });
  await until(watch, () => watch.services().length === 1);
  hear({ port: after.port });
  await until(watch, () => watch.services()[0]?.baseUrl === `http://127.0.0.1:${after.port}`);
  expect(watch.services()).toHaveLength(1);
});

test("discovering ends with its signal, and tells what was found until then", async () => {
  const { port } = await serve();
  const stop = new AbortController();
  const found = await discover({
    accepts: () => true,
    signal: stop.signal,
    timeoutMs: 60_000,
    open: ({ onResponse }) => {
      setImmediate(() => onResponse(announcement({ addresses: ["127.0.0.1"], port }) as never));
      // It asks the service, which is told by a second announcement that brings nothing new.
      const timer = setInterval(() => stop.abort(), 300);
      return { query: () => {}, close: () => clearInterval(timer) };
    },
  });
  expect(found.map(({ id }) => id)).toEqual([serviceId]);
});
