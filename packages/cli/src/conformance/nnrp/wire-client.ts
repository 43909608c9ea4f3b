import { createServer } from "node:net";
import { type ClientConnection, NnrpError } from "@plenum/nnrp";
import { type ConnectOptions, connect } from "@plenum/nnrp/node";
import { schemaVersion } from "@plenum/profile";
import { type TlsFolder, toManifest, type WireEndpoint, writeWhole } from "./wire-target.ts";
import type { WireTransport } from "./wire-target-flags.ts";

export interface WireClientOptions {
  readonly transports: readonly WireTransport[];
  readonly tls: TlsFolder | undefined;
  readonly manifestPath: string;
  /** Gives up. */
  readonly signal: AbortSignal;
  /** Told once the manifest is written. */
  readonly onReady: (manifest: object) => void;
  /** Told when an exchange is done. */
  readonly onDone: (transport: WireTransport) => void;
}

/** Carriers on which the suite plays the server. */
export const clientTransports: readonly WireTransport[] = ["tcp", "websocket"];

const frameBytes = 64 * 1024 * 1024;
const maxInFlight = 4;
/** Between two attempts to connect, in milliseconds. */
const retryMs = 50;

/**
 * Writes the manifest with free ports, waits on each until the suite listens there, and does one exchange with it.
 * @throws NnrpError where an exchange failed; the signal's reason.
 */
export async function runWireClient(options: WireClientOptions): Promise<void> {
  const { transports, tls, manifestPath, signal, onReady, onDone } = options;
  const endpoints = await Promise.all(transports.map((name) => endpointOf(name, tls)));
  const facts = { mode: "suite_as_server", endpoints, tls, frameBytes, maxInFlight } as const;
  const manifest = toManifest(facts, manifestPath);
  await writeWhole(manifestPath, manifest);
  onReady(manifest);
  await Promise.all(
    endpoints.map(async ({ name, endpoint }) => {
      const address = name === "tcp" ? `tcp://${endpoint}` : endpoint;
      const security = tls === undefined ? {} : { tls: { ca: tls.cert, serverName: tls.serverName } };
      await exchange(await connectWhenBound(address, { ...security, signal }), signal);
      onDone(name);
    }),
  );
}

async function endpointOf(name: WireTransport, tls: TlsFolder | undefined): Promise<WireEndpoint> {
  const port = await freePort();
  if (name === "tcp") return { name, endpoint: `127.0.0.1:${port}`, isSecure: false };
  if (tls === undefined) return { name, endpoint: `ws://127.0.0.1:${port}/nnrp`, isSecure: false };
  return { name, endpoint: `wss://${tls.serverName}:${port}/nnrp`, isSecure: true };
}

/** The platform gives a port away that was free a moment ago last. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject).listen({ host: "127.0.0.1", port: 0 }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

async function connectWhenBound(address: string, options: ConnectOptions): Promise<ClientConnection> {
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      return await connect(address, options);
    } catch (error) {
      if (!(error instanceof NnrpError) || error.code !== "connect-failed") throw error;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}

/** One request to its end, whatever comes: the suite's bodies are neither events nor laid out as the protocol says. */
async function exchange(connection: ClientConnection, signal: AbortSignal): Promise<void> {
  try {
    const session = await connection.openSession({ signal, maxInFlight });
    const body = { model: "reference-model", messages: [{ role: "user", content: "ping" }], stream: true };
    const event = JSON.stringify({ schema_version: schemaVersion, operation: "chat.completions.create", body });
    const end = await session.submit({ body: { event }, signal }, () => {}).ended;
    if (end.type === "failed") throw end.error;
    await session.close();
  } finally {
    await connection.close();
  }
}
