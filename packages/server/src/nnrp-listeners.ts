import { type NnrpServer, parseEndpoint } from "@plenum/nnrp";
import { type Listener, listen } from "@plenum/nnrp/node";
import type { TlsPair } from "./tls-files.ts";

/** An address that could not be bound. */
export class ListenError extends Error {
  override readonly name = "ListenError";
  /** As configured. */
  readonly address: string;
  /** The platform's, such as EADDRINUSE. */
  readonly code: string | undefined;

  constructor(address: string, cause: unknown) {
    super(`${address} can't be opened: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.address = address;
    const isCoded = cause instanceof Error && "code" in cause && typeof cause.code === "string";
    this.code = isCoded ? String(cause.code) : undefined;
  }
}

/**
 * Opens every address, or none.
 * @param tls reads what those with TLS need.
 * @throws ListenError for the first that can't be opened.
 */
export async function openListeners(
  server: NnrpServer,
  addresses: readonly string[],
  tls?: () => TlsPair,
): Promise<readonly Listener[]> {
  const listeners: Listener[] = [];
  for (const address of addresses) {
    try {
      listeners.push(await listen(server, address, isSecure(address) && tls !== undefined ? { tls: tls() } : {}));
    } catch (error) {
      await closeListeners(listeners);
      throw new ListenError(address, error);
    }
  }
  return listeners;
}

function isSecure(address: string): boolean {
  const endpoint = parseEndpoint(address);
  return endpoint.kind === "carrier" && endpoint.locator.secure;
}

/** Takes no new connections. */
export async function closeListeners(listeners: readonly Listener[]): Promise<void> {
  await Promise.all(listeners.map((listener) => listener.close()));
}
