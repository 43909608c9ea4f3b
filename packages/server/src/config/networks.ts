import { isIP } from "node:net";

/** An address, or a range of them as CIDR has it. */
export interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly family: "ipv4" | "ipv6";
}

/** Reads `192.168.0.0/16`, `::1`; undefined for anything else. */
export function parseNetwork(text: string): Network | undefined {
  const [address = "", prefix, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0) return undefined;
  const bits = version === 4 ? 32 : 128;
  const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (!(length <= bits)) return undefined;
  return { address, prefix: length, family: version === 4 ? "ipv4" : "ipv6" };
}
