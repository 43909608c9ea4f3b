import { randomUUID } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { WireTransport } from "./wire-target-flags.ts";

/** Where one carrier is reached. */
export interface WireEndpoint {
  readonly name: WireTransport;
  /** `host:port` for TCP, an URL else. */
  readonly endpoint: string;
  readonly isSecure: boolean;
}

export interface ManifestFacts {
  readonly mode: "suite_as_client" | "suite_as_server";
  readonly endpoints: readonly WireEndpoint[];
  readonly tls: TlsFolder | undefined;
  readonly frameBytes: number;
  readonly maxInFlight: number;
}

/** What a target can do in each role: tokens of the suite. */
const capabilities = {
  suite_as_client: [
    "profile.openai-compatible.level1.wire",
    "control.cancel_abort",
    "control.result_drop_reason",
    "control.trace_context",
    "control.deadline_expire",
  ],
  suite_as_server: ["control.progress_partial", "control.credit_backpressure", "object.lifecycle"],
} as const;

/** Version of the suite that the manifest is for. */
const suiteVersion = "0.1.0";
const protocolVersion = "nnrp-1-preview4";

/** A target manifest (schema `wire-conformance-target`). */
export function toManifest(facts: ManifestFacts, manifestPath: string): object {
  return {
    target_name: "plenum",
    protocol_version: protocolVersion,
    suite_version: suiteVersion,
    wire_conformance: {
      modes: [facts.mode],
      transports: facts.endpoints.map(({ name, endpoint, isSecure }) => ({
        name,
        endpoint,
        tls: isSecure,
        ...(isSecure && facts.tls !== undefined ? { security: facts.tls.describe(manifestPath) } : {}),
      })),
      host_route_providers: [],
      capabilities: capabilities[facts.mode],
      limits: { max_frame_bytes: facts.frameBytes, max_in_flight: facts.maxInFlight },
    },
  };
}

/** Whole or not at all: the suite reads it as soon as it is there. */
export async function writeWhole(path: string, value: object): Promise<void> {
  const temporary = join(dirname(path), `.${randomUUID()}.tmp`);
  await writeFile(temporary, `${JSON.stringify(value, null, 2)}\n`);
  await rename(temporary, path);
}

const certificateName = "cert.der";
const keyName = "key.der";

/** `cert.der` and `key.der` (PKCS #8) of a folder, for the name `localhost`. */
export class TlsFolder {
  readonly serverName = "localhost";
  /** PEM, as Node wants it. */
  readonly cert: string;
  readonly key: string;
  readonly #folder: string;

  private constructor(folder: string, cert: Buffer, key: Buffer) {
    this.#folder = folder;
    this.cert = toPem(cert, "CERTIFICATE");
    this.key = toPem(key, "PRIVATE KEY");
  }

  /** @throws Error of the file system. */
  static async read(folder: string): Promise<TlsFolder> {
    const [cert, key] = await Promise.all([readFile(join(folder, certificateName)), readFile(join(folder, keyName))]);
    return new TlsFolder(folder, cert, key);
  }

  /** The manifest's `security`, with paths from the manifest. */
  describe(manifestPath: string): object {
    const from = dirname(resolve(manifestPath));
    const path = (name: string): string => relative(from, resolve(this.#folder, name));
    return {
      server_name: this.serverName,
      trusted_certificate_der_path: path(certificateName),
      certificate_der_path: path(certificateName),
      private_key_pkcs8_der_path: path(keyName),
    };
  }
}

function toPem(der: Buffer, label: string): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
