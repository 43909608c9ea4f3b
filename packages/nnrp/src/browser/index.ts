import { connectCarrier } from "../session/client/connection.ts";
import type { ClientConnection, ClientOptions } from "../session/client/types.ts";
import { openWebSocket } from "./websocket-carrier.ts";

/**
 * Connects to `ws://host:port/path` or `wss://…`, over the platform's WebSocket.
 *
 * @throws {TypeError} The address is another one.
 * @throws {NnrpError} `connect-failed`, `timeout`, `cancelled`, `protocol-error`.
 */
export async function connect(endpoint: string, options: ClientOptions = {}): Promise<ClientConnection> {
  return connectCarrier(await openWebSocket(endpoint, options), options);
}
