import { isIPv4 } from "node:net";
import type { Config } from "./config.ts";
import { listenPlace } from "./nnrp-schema.ts";

/** True for an address or name that only this machine can reach. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  return name === "::1" || /^::ffff:127\./.test(name) || (isIPv4(name) && name.startsWith("127."));
}

/**
 * Why this configuration must not be served, or undefined when it may: an address beyond loopback needs a token or an
 * explicit `insecure_open` (LMSP §2).
 */
export function exposureProblem(config: Pick<Config, "host" | "auth" | "insecureOpen" | "nnrp">): string | undefined {
  if (config.auth.tokens.length > 0 || config.insecureOpen) return undefined;
  const exposed = isLoopbackHost(config.host) ? config.nnrp.listen.find(isBeyondLoopback) : `host ${config.host}`;
  if (exposed === undefined) return undefined;
  return (
    `${exposed} can be reached from other machines and no token is configured: add one under auth.tokens ` +
    "(`plenum token create --principal NAME` prints it), or listen on 127.0.0.1, or pass --insecure-open to let " +
    "everyone on the network use the service"
  );
}

function isBeyondLoopback(address: string): boolean {
  const place = listenPlace(address);
  return place !== undefined && place.carrier !== "ipc" && !isLoopbackHost(place.host);
}
