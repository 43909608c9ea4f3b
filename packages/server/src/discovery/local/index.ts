/** What already runs on this machine and serves models. */
import { identify, type LocalRuntimeKind } from "./identify.ts";

export interface LocalRuntime {
  readonly kind: LocalRuntimeKind;
  /** `http://127.0.0.1:<port>` */
  readonly baseUrl: string;
  /** Its kind on the kind's usual port, else `<kind>-<port>`: the same at every start. */
  readonly name: string;
}

export interface FindLocalRuntimesOptions {
  /** Base URLs or `host:port` of our own listeners and of runtimes that are known already: never asked. */
  readonly own: readonly string[];
  /** Names that are taken; a found runtime gets `<kind>-<port>` then. @default none */
  readonly takenNames?: readonly string[];
  /** Loopback ports to ask. @default those of Ollama, llama-server, vLLM, LM Studio, Jan */
  readonly ports?: readonly number[];
  /** Milliseconds that all of it takes at most. @default 500 */
  readonly timeoutMs?: number;
}

/** In the order in which the catalog gives names. Ports of each kind, the usual one first. */
const usualPorts: Readonly<Record<LocalRuntimeKind, readonly number[]>> = {
  ollama: [11434],
  "llama-server": [8080, 9931],
  vllm: [8000],
  "lm-studio": [1234],
  jan: [1337],
  "openai-compatible": [],
};

const kinds = Object.keys(usualPorts);

/**
 * Asks the ports in parallel and tells by the answers what runs there, never by the port. Only 127.0.0.1 is contacted.
 * What does not answer in time is not found. Never rejects.
 */
export async function findLocalRuntimes(options: FindLocalRuntimesOptions): Promise<readonly LocalRuntime[]> {
  const own = new Set(options.own.map(loopbackPort));
  const ports = [...new Set(options.ports ?? Object.values(usualPorts).flat())].filter((port) => !own.has(port));
  const signal = AbortSignal.timeout(options.timeoutMs ?? 500);
  const found = await Promise.all(ports.map(async (port) => ({ port, kind: await identify(port, signal) })));
  const takenNames = options.takenNames ?? [];
  return found
    .flatMap(({ port, kind }) => (kind === undefined ? [] : [describe(kind, port, takenNames)]))
    .sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
}

function describe(kind: LocalRuntimeKind, port: number, takenNames: readonly string[]): LocalRuntime {
  const isUsual = usualPorts[kind][0] === port && !takenNames.includes(kind);
  return { kind, baseUrl: `http://127.0.0.1:${port}`, name: isUsual ? kind : `${kind}-${port}` };
}

/** Port of an address on this machine; undefined: on another one, or no address. */
function loopbackPort(address: string): number | undefined {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(address) ? address : `http://${address}`;
  if (!URL.canParse(text)) return undefined;
  const { hostname, port, protocol } = new URL(text);
  const isHere = /^(localhost|.*\.localhost|127(\.\d+){3}|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[0-9a-f:]+\])$/.test(hostname);
  if (!isHere) return undefined;
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}
