import { describe, expect, test } from "vitest";
import { eligibleRoutes, orderByProbes, routesTo } from "./choose.ts";
import { formatLocator, type Locator, parseEndpoint } from "./endpoint.ts";

const locatorOf = (text: string): Locator => {
  const parsed = parseEndpoint(text);
  if (parsed.kind !== "carrier") throw new Error(text);
  return parsed.locator;
};

test.each([
  "tcp://127.0.0.1:4433",
  "tls://models.example:4433",
  "quic://[::1]:4433",
  "unix:///run/nnrp.sock",
  "npipe://nnrp",
  "ws://127.0.0.1:8433/nnrp?token=a",
  "wss://models.example:443/nnrp",
])("%s is written as it was read", (text) => expect(formatLocator(locatorOf(text))).toBe(text));

test.each([
  ["nnrp://models.example", { secure: false, host: "models.example", port: undefined }],
  ["nnrps://[::1]:4433/path?query", { secure: true, host: "::1", port: 4433 }],
])("%s names a service", (text, application) =>
  expect(parseEndpoint(text)).toEqual({ kind: "application", application }),
);

test.each([
  ["models.example:4433", "unknown scheme"],
  ["http://models.example", "unknown scheme"],
  ["tcp://models.example", "no default"],
  ["tcp://models.example:1/path", "path"],
  ["nnrp://", "no host"],
  ["nnrp", "not a URL"],
  ["nnrp://user:hush@models.example", "user info"],
  ["ws://models.example/#x", "fragment"],
  ["unix://run/nnrp.sock", "absolute path"],
  ["npipe://a/b", "pipe's name"],
])("%s is refused: %s", (text, problem) => {
  expect(() => parseEndpoint(text)).toThrow(problem);
  expect(() => parseEndpoint(text)).not.toThrow("hush");
});

describe("choosing", () => {
  const [tcp, tls, ws, wss, unix, quic] = [
    "tcp://a:1",
    "tls://a:1",
    "ws://a:1/n",
    "wss://a:1/n",
    "unix:///n",
    "quic://a:1",
  ].map(locatorOf) as [Locator, Locator, Locator, Locator, Locator, Locator];
  const all = new Set(["tcp", "ipc", "websocket"] as const);

  test("a service with a port implies TCP, unless a route says how", () => {
    const application = { secure: true, host: "a", port: 1 };
    expect(routesTo(application, [wss])).toEqual([tls, wss]);
    expect(routesTo(application, [tls])).toEqual([tls]);
    expect(routesTo({ ...application, port: undefined }, [])).toEqual([]);
  });

  test("the first reason against a route is told", () => {
    const { eligible, rejected } = eligibleRoutes([tcp, tls, ws, wss, unix, quic], true, "auto", all);
    expect(eligible).toEqual([tls, wss]);
    expect(rejected.map(({ locator, reason }) => [locator.carrier, reason])).toEqual([
      ["tcp", "security-unsatisfied"],
      ["websocket", "security-unsatisfied"],
      ["ipc", "security-unsatisfied"],
      ["quic", "local-unavailable"],
    ]);
    expect(eligibleRoutes([tcp, unix], false, "force-ipc", all)).toEqual({
      eligible: [unix],
      rejected: [{ locator: tcp, reason: "policy-disallowed" }],
    });
  });

  test("successes, throughput, round trip, preference, rank", () => {
    const probe = (locator: Locator, successes: number, medianBytesPerSecond: number, medianRoundTripMs: number) => ({
      locator,
      successes,
      medianBytesPerSecond,
      medianRoundTripMs,
    });
    const order = (results: ReturnType<typeof probe>[], policy: Parameters<typeof orderByProbes>[1] = "auto") =>
      orderByProbes(results, policy).map(({ locator }) => locator.carrier);
    expect(order([probe(tcp, 2, 9, 1), probe(ws, 3, 5, 1), probe(unix, 0, 99, 1)])).toEqual(["websocket", "tcp"]);
    expect(order([probe(tcp, 3, 5, 1), probe(ws, 3, 6, 9)])).toEqual(["websocket", "tcp"]);
    expect(order([probe(tcp, 3, 5, 2), probe(ws, 3, 5, 1)])).toEqual(["websocket", "tcp"]);
    expect(order([probe(ws, 3, 5, 1), probe(tcp, 3, 5, 1), probe(unix, 3, 5, 1)])).toEqual(["ipc", "tcp", "websocket"]);
    expect(order([probe(tcp, 3, 5, 1), probe(ws, 3, 5, 1)], "prefer-websocket")).toEqual(["websocket", "tcp"]);
  });
});
