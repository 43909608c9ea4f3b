import { connect as connectSocket, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { eligibleRoutes, orderByProbes, type Rejection, routesTo } from "../endpoint/choose.ts";
import { authority, formatLocator, type Locator, parseEndpoint } from "../endpoint/endpoint.ts";
import type { Carrier } from "../session/carrier.ts";
import { connectCarrier } from "../session/client/connection.ts";
import type { ClientConnection } from "../session/client/types.ts";
import { systemClock } from "../session/clock.ts";
import { NnrpError } from "../session/errors.ts";
import { defaultClientLimits } from "../session/limits.ts";
import { probeCarrier, probeResult } from "../session/probe.ts";
import { StreamCarrier } from "./stream-carrier.ts";
import type { ConnectOptions } from "./types.ts";
import { openWebSocket } from "./websocket.ts";

const available: ReadonlySet<Locator["carrier"]> = new Set(["tcp", "ipc", "websocket"] as const);

/**
 * Connects to `tcp://host:port`, `tls://…`, `ws://host:port/path`, `wss://…`, `unix:///path`, `npipe://name`, or to the
 * best route of `nnrp://host:port` or `nnrps://…`: one eligible route is taken, several are probed first.
 *
 * @throws {TypeError} The endpoint or its options do not fit.
 * @throws {NnrpError} `connect-failed`, `timeout`, `cancelled`, `protocol-error`.
 */
export async function connect(endpoint: string, options: ConnectOptions = {}): Promise<ClientConnection> {
  const locator = await chooseRoute(endpoint, options);
  return connectCarrier(await openCarrier(locator, options), options);
}

/**
 * The route that `connect` would take.
 *
 * @throws {NnrpError} `connect-failed`: none is left; the message names each with its reason.
 */
export async function chooseRoute(endpoint: string, options: ConnectOptions = {}): Promise<Locator> {
  const parsed = parseEndpoint(endpoint);
  const given = (options.routes ?? []).map((route) => {
    const each = parseEndpoint(route);
    if (each.kind === "application") throw new TypeError(`The route ${route} names no carrier`);
    return each.locator;
  });
  const [needsSecurity, routes] =
    parsed.kind === "application"
      ? [parsed.application.secure, routesTo(parsed.application, given)]
      : [false, [parsed.locator, ...given]];
  const policy = options.policy ?? "auto";
  const { eligible, rejected } = eligibleRoutes(routes, needsSecurity, policy, available);
  const [only, ...others] = eligible;
  if (only === undefined) throw noRoute(rejected);
  if (others.length === 0) return only;
  const results = await Promise.all(
    eligible.map(async (route) => ({ locator: route, ...(await probe(route, options)) })),
  );
  const best = orderByProbes(results, policy)[0];
  if (best !== undefined) return best.locator;
  throw noRoute([...rejected, ...eligible.map((route) => ({ locator: route, reason: "probe-failed" as const }))]);
}

function noRoute(rejected: readonly Rejection[]): NnrpError {
  const reasons = rejected.map(({ locator, reason }) => `${formatLocator(locator).replace(/\?.*$/s, "")}: ${reason}`);
  return new NnrpError("connect-failed", `No route is left${reasons.length > 0 ? ` (${reasons.join(", ")})` : ""}`);
}

async function probe(locator: Locator, options: ConnectOptions) {
  const { connectMs } = { ...defaultClientLimits, ...options.limits };
  try {
    return probeResult(await probeCarrier(await openCarrier(locator, options), systemClock, connectMs));
  } catch (error) {
    if (error instanceof NnrpError && error.code !== "cancelled") return probeResult([]);
    throw error;
  }
}

/**
 * Opens a carrier without a word on it.
 *
 * @throws {TypeError} The options do not fit.
 * @throws {NnrpError} `connect-failed`, `cancelled`.
 */
export async function openCarrier(locator: Locator, options: ConnectOptions = {}): Promise<Carrier> {
  switch (locator.carrier) {
    case "tcp":
      return openSocket(locator, options);
    case "ipc":
      return openSocket(locator, options);
    case "websocket":
      return openWebSocket(locator, options);
    case "quic":
      throw new NnrpError("connect-failed", "QUIC is not available");
  }
}

function openSocket(locator: Extract<Locator, { carrier: "tcp" | "ipc" }>, options: ConnectOptions): Promise<Carrier> {
  const { signal } = options;
  const { connectMs } = { ...defaultClientLimits, ...options.limits };
  const remote = locator.carrier === "ipc" ? locator.path : authority(locator.host, locator.port);
  return new Promise((resolve, reject) => {
    const socket = startSocket(locator, options);
    const settle = (): void => {
      socket.removeAllListeners("error");
      socket.setTimeout(0).removeAllListeners("timeout");
      signal?.removeEventListener("abort", giveUp);
    };
    const fail = (error: NnrpError): void => {
      settle();
      socket.on("error", () => {}).destroy();
      reject(error);
    };
    const giveUp = () => fail(new NnrpError("cancelled", "Connecting was given up", { cause: signal?.reason }));
    socket
      .once("error", (error) => fail(new NnrpError("connect-failed", `${remote}: ${error.message}`, { cause: error })))
      .setTimeout(connectMs, () => fail(new NnrpError("connect-failed", `${remote}: no answer in ${connectMs} ms`)))
      .once(locator.secure ? "secureConnect" : "connect", () => {
        settle();
        resolve(new StreamCarrier(socket, locator.carrier, locator.secure, remote));
      });
    if (signal?.aborted) giveUp();
    else signal?.addEventListener("abort", giveUp, { once: true });
  });
}

function startSocket(locator: Extract<Locator, { carrier: "tcp" | "ipc" }>, { tls }: ConnectOptions): Socket {
  if (locator.carrier === "ipc") return connectSocket({ path: locator.path });
  const { host, port } = locator;
  if (!locator.secure) return connectSocket({ host, port, noDelay: true, keepAlive: true });
  const servername = tls?.serverName ?? (/[a-z]/i.test(host) && !host.includes(":") ? host : undefined);
  const socket = connectTls({
    host,
    port,
    ...(tls?.ca === undefined ? {} : { ca: [tls.ca].flat() }),
    ...(servername === undefined ? {} : { servername }),
  });
  return socket.setNoDelay(true);
}
