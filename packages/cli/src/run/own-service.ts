import { createHash, randomBytes } from "node:crypto";
import { type Client, createClient, LmspError } from "@plenum/client";
import { addressOf, type ConnectionFlags, connect } from "../connection.ts";
import type { Surroundings } from "../surroundings.ts";

/** A service to talk to, and how to let go of it. */
export interface UsedService {
  readonly client: Client;
  release(): Promise<void>;
}

const probeMs = 5000;

/**
 * The service at the address; when none answers there and the address is this machine's, one of our own in this
 * process, for the time of the command.
 * @throws LmspError `unreachable` when none answers at another machine's address.
 */
export async function findOrStartService(
  flags: ConnectionFlags,
  around: Surroundings,
  signal: AbortSignal,
): Promise<UsedService> {
  const client = connect(flags, around);
  try {
    await client.service({ signal: AbortSignal.any([signal, AbortSignal.timeout(probeMs)]) });
    return { client, release: async () => {} };
  } catch (error) {
    signal.throwIfAborted();
    const isAbsent = error instanceof LmspError && error.code === "unreachable";
    if (!isAbsent || !isOwnMachine(addressOf(flags, around.env))) throw error;
  }
  return startOwnService(around, signal);
}

function isOwnMachine(address: string): boolean {
  return /^(https?:\/\/)?(localhost|127(\.\d+){3}|\[::1\])([:/]|$)/i.test(address);
}

async function startOwnService(around: Surroundings, signal: AbortSignal): Promise<UsedService> {
  around.errors.write("No service is running; one is started for this command.\n");
  const { createServer, loadConfig } = await import("@plenum/server");
  const { fetchStarterModel } = await import("../serve/starter-model.ts");
  const config = await loadConfig({
    // The log goes where the answer goes: here it is silent, also when the environment asks for more.
    flags: { host: "127.0.0.1", port: 0, logLevel: "silent" },
    env: around.env,
  });
  await fetchStarterModel(config, around, signal);
  // Other users of this machine can reach the port: only this process knows the token.
  const token = randomBytes(32).toString("base64url");
  const tokenSha256 = createHash("sha256").update(token).digest("hex");
  const auth = { tokens: [{ principal: "local", tokenSha256, scopes: ["read", "infer"] as const }] };
  // The database is the service's that runs in this home, now or later.
  const server = await createServer({ ...config, auth, store: { ...config.store, kind: "memory" } });
  const release = () => server.close({ drainMs: 0 });
  try {
    signal.throwIfAborted();
    await server.listen();
    return { client: createClient({ baseUrl: server.url, token }), release };
  } catch (error) {
    await release();
    throw error;
  }
}
