import type { IncomingMessage } from "node:http";
import type { TransportPolicy } from "../endpoint/choose.ts";
import type { ClientOptions } from "../session/client/types.ts";

/** Certificates and keys, as Node's `tls` takes them. */
export interface ServerTls {
  readonly key: string | Buffer;
  readonly cert: string | Buffer;
}

export interface ListenOptions {
  /** Needed for `tls://` and `wss://`; refused for the others. */
  readonly tls?: ServerTls;
  /** The path that WebSocket upgrades must have. Default: the endpoint's path; `/` takes any. */
  readonly path?: string;
  /**
   * Decides about a WebSocket upgrade before it happens, for example by its Origin or token; what it returns becomes
   * the carrier's `attachment`. Throw or reject `UpgradeRefused` to answer with an HTTP status.
   */
  readonly upgrade?: (request: IncomingMessage) => unknown;
}

/** An open listener. */
export interface Listener {
  /** With the port that was bound: `tcp://127.0.0.1:40001`. */
  readonly endpoint: string;
  /** Takes another certificate for new carriers, of an endpoint with TLS; does nothing for others. */
  renew(tls: ServerTls): void;
  /** Takes no new carriers. Open ones stay until their server closes. Removes a Unix socket's file. */
  close(): Promise<void>;
}

export interface ClientTls {
  /** Trusted certificates in PEM. Default: the platform's. */
  readonly ca?: string | Buffer | readonly (string | Buffer)[];
  /** The name that the certificate must have. Default: the endpoint's host. */
  readonly serverName?: string;
}

export interface ConnectOptions extends ClientOptions {
  readonly tls?: ClientTls;
  /** Further headers of a WebSocket upgrade, for example `authorization`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Explicit carriers beside what an `nnrp://` endpoint implies: `["unix:///run/nnrp.sock", "ws://host/nnrp"]`. */
  readonly routes?: readonly string[];
  /** Default auto. */
  readonly policy?: TransportPolicy;
}
