/** Addresses: `nnrp://` and `nnrps://` name a service, the others one carrier (section 10). */

/** Where one carrier is found. */
export type Locator =
  | { readonly carrier: "tcp"; readonly secure: boolean; readonly host: string; readonly port: number }
  | { readonly carrier: "quic"; readonly secure: true; readonly host: string; readonly port: number }
  /** A Unix socket's path, or a Windows pipe's name (`\\.\pipe\name`). */
  | { readonly carrier: "ipc"; readonly secure: false; readonly path: string }
  | {
      readonly carrier: "websocket";
      readonly secure: boolean;
      readonly host: string;
      readonly port: number;
      /** Path and query. */
      readonly target: string;
      readonly url: string;
    };

/** A service that may be reached by several carriers. `port` is undefined when it has none. */
export interface ApplicationEndpoint {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number | undefined;
}

export type Endpoint =
  | { readonly kind: "application"; readonly application: ApplicationEndpoint }
  | { readonly kind: "carrier"; readonly locator: Locator };

const bad = (text: string, problem: string) => new TypeError(`The NNRP endpoint ${withoutSecrets(text)} ${problem}`);

const schemes: ReadonlySet<string> = new Set(["nnrp", "nnrps", "tcp", "tls", "quic", "ws", "wss", "unix", "npipe"]);

/** User info and query may hold credentials. */
const withoutSecrets = (text: string) => text.replace(/\/\/[^/@]*@/, "//…@").replace(/\?.*$/s, "?…");

/**
 * Reads an address: `nnrp://host:port`, `nnrps://…`, `tcp://host:port`, `tls://…`, `quic://…`, `ws://host:port/path`,
 * `wss://…`, `unix:///path`, `npipe://name`.
 *
 * @throws {TypeError} It is none; the message says why.
 */
export function parseEndpoint(text: string): Endpoint {
  if (text.startsWith("unix://")) return { kind: "carrier", locator: parseUnix(text) };
  if (text.startsWith("npipe://")) return { kind: "carrier", locator: parsePipe(text) };
  if (!URL.canParse(text)) throw bad(text, "is not a URL");
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") throw bad(text, "must not hold user info");
  if (url.hash !== "") throw bad(text, "must not hold a fragment");
  const scheme = url.protocol.slice(0, -1);
  if (!schemes.has(scheme)) throw bad(text, `has an unknown scheme; ${[...schemes].join(", ")} are known`);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (host === "") throw bad(text, "has no host");
  switch (scheme) {
    case "nnrp":
    case "nnrps": {
      const port = url.port === "" ? undefined : Number(url.port);
      return { kind: "application", application: { secure: scheme === "nnrps", host, port } };
    }
    case "tcp":
    case "tls":
    case "quic": {
      if (url.port === "") throw bad(text, "needs a port; NNRP has no default");
      if (url.pathname.length > 1 || url.search !== "") throw bad(text, "must not hold a path or query");
      const port = Number(url.port);
      if (scheme === "quic") return { kind: "carrier", locator: { carrier: "quic", secure: true, host, port } };
      return { kind: "carrier", locator: { carrier: "tcp", secure: scheme === "tls", host, port } };
    }
    case "ws":
    case "wss": {
      const secure = scheme === "wss";
      const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
      const target = url.pathname + url.search;
      return { kind: "carrier", locator: { carrier: "websocket", secure, host, port, target, url: text } };
    }
    default:
      throw bad(text, "cannot be read");
  }
}

function parseUnix(text: string): Locator {
  const path = text.slice("unix://".length);
  if (!path.startsWith("/")) throw bad(text, "needs an absolute path: unix:///run/nnrp.sock");
  return { carrier: "ipc", secure: false, path };
}

function parsePipe(text: string): Locator {
  const name = text.slice("npipe://".length);
  if (!/^[^\\/]+$/.test(name)) throw bad(text, "needs a pipe's name: npipe://nnrp");
  return { carrier: "ipc", secure: false, path: `\\\\.\\pipe\\${name}` };
}

/** `host:port`, IPv6 in brackets. */
export const authority = (host: string, port: number): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;

/** The address of a locator. */
export function formatLocator(locator: Locator): string {
  switch (locator.carrier) {
    case "tcp":
      return `${locator.secure ? "tls" : "tcp"}://${authority(locator.host, locator.port)}`;
    case "quic":
      return `quic://${authority(locator.host, locator.port)}`;
    case "ipc":
      return locator.path.startsWith("/") ? `unix://${locator.path}` : `npipe://${locator.path.slice(9)}`;
    case "websocket":
      return `${locator.secure ? "wss" : "ws"}://${authority(locator.host, locator.port)}${locator.target}`;
  }
}
