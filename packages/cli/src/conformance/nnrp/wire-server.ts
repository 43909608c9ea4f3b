import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConformanceService } from "@plenum/server/conformance";
import { type TlsFolder, toManifest, type WireEndpoint, writeWhole } from "./wire-target.ts";
import type { WireTransport } from "./wire-target-flags.ts";

export interface WireServerOptions {
  readonly service: ConformanceService;
  readonly transports: readonly WireTransport[];
  readonly tls: TlsFolder | undefined;
  readonly manifestPath: string;
}

export interface WireServer {
  readonly manifest: object;
  /** Removes the socket's folder. */
  close(): Promise<void>;
}

/** Most operations in flight that the suite's plans ask for. */
const maxInFlight = 4;

/**
 * Opens every carrier on a free port and then writes the manifest.
 * The service is closed by who made it.
 */
export async function openWireServer(options: WireServerOptions): Promise<WireServer> {
  const { service, transports, tls, manifestPath } = options;
  const folder = await mkdtemp(join(tmpdir(), "plenum-nnrp-"));
  const close = () => rm(folder, { recursive: true, force: true });
  try {
    const endpoints: WireEndpoint[] = [];
    for (const name of transports) endpoints.push(await open(name, service, tls, folder));
    const facts = { mode: "suite_as_client", endpoints, tls, frameBytes: service.frameBytes, maxInFlight } as const;
    const manifest = toManifest(facts, manifestPath);
    await writeWhole(manifestPath, manifest);
    return { manifest, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  name: WireTransport,
  service: ConformanceService,
  tls: TlsFolder | undefined,
  folder: string,
): Promise<WireEndpoint> {
  switch (name) {
    case "tcp": {
      const address = await service.listen("tcp://127.0.0.1:0");
      return { name, endpoint: address.replace("tcp://", ""), isSecure: false };
    }
    case "ipc":
      return { name, endpoint: await service.listen(`unix://${join(folder, "nnrp.sock")}`), isSecure: false };
    case "websocket": {
      if (tls === undefined) return { name, endpoint: await service.listen("ws://127.0.0.1:0/nnrp"), isSecure: false };
      const { serverName, key, cert } = tls;
      return {
        name,
        endpoint: await service.listen(`wss://${serverName}:0/nnrp`, { tls: { key, cert } }),
        isSecure: true,
      };
    }
  }
}
