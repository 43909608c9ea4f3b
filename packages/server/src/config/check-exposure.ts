import { isIPv4 } from "node:net";
import type { Config } from "./config.ts";
import { listenPlace } from "./nnrp-schema.ts";

/** True for an address or name that only this machine can reach. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  return name === "::1" || /^::ffff:127\./.test(name) || (isIPv4(name) && name.startsWith("127."));
}

/** The first address of a configuration that other machines can reach; undefined when there is none. */
export function exposedAddress(config: Pick<Config, "host" | "nnrp">): string | undefined {
  return isLoopbackHost(config.host) ? config.nnrp.listen.find(isBeyondLoopback) : config.host;
}

function isBeyondLoopback(address: string): boolean {
  const place = listenPlace(address);
  return place !== undefined && place.carrier !== "ipc" && !isLoopbackHost(place.host);
}
