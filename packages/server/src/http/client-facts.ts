import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { parseNetwork } from "../config/index.ts";

/** Who asks, as far as it can be believed. */
export interface ClientFacts {
  /** Address of the client, for fairness. */
  readonly address: string;
  /** Host that the client asked for. */
  readonly host: string | undefined;
  /** The client speaks TLS. */
  readonly isSecure: boolean;
}

/** Reads `X-Forwarded-For`, `-Proto` and `-Host`, which anyone can send, only where a trusted proxy has sent them. */
export class ClientReader {
  readonly #trusted: BlockList | undefined;

  /** @param proxies addresses or CIDR ranges of trusted proxies. */
  constructor(proxies: readonly string[]) {
    if (proxies.length === 0) return;
    this.#trusted = new BlockList();
    for (const text of proxies) {
      const network = parseNetwork(text);
      if (network === undefined) throw new RangeError(`${text} is no address or CIDR range`);
      this.#trusted.addSubnet(network.address, network.prefix, network.family);
    }
  }

  read({ headers, socket }: Pick<IncomingMessage, "headers" | "socket">): ClientFacts {
    const address = plain(socket.remoteAddress ?? "");
    const isSecure = "encrypted" in socket && socket.encrypted === true;
    if (this.#trusted === undefined || !this.#isTrusted(address)) return { address, host: headers.host, isSecure };
    const proto = last(headers["x-forwarded-proto"])?.toLowerCase();
    return {
      address: this.#before(address, headers["x-forwarded-for"]),
      host: last(headers["x-forwarded-host"]) ?? headers.host,
      isSecure: proto === undefined ? isSecure : proto === "https",
    };
  }

  /** The nearest address of the row that is no proxy of ours: whoever stands further away may have made the rest up. */
  #before(proxy: string, forwarded: string | string[] | undefined): string {
    let nearest = proxy;
    for (const entry of [forwarded ?? []].flat().join(",").split(",").reverse()) {
      const address = plain(
        entry
          .trim()
          .replace(/^\[(.*)\](:\d+)?$/, "$1")
          .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1"),
      );
      if (isIP(address) === 0) return nearest;
      nearest = address;
      if (!this.#isTrusted(address)) return nearest;
    }
    return nearest;
  }

  #isTrusted(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && (this.#trusted?.check(address, version === 4 ? "ipv4" : "ipv6") ?? false);
  }
}

/** An IPv4 address as such, also where the socket speaks IPv6. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, "");
}

/** Of several values, the one that the nearest proxy has set. */
function last(header: string | string[] | undefined): string | undefined {
  const value = [header ?? []].flat().join(",").split(",").at(-1)?.trim();
  return value === "" ? undefined : value;
}
