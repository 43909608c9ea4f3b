import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The Python that has nnrp-py; see `nnrp-peer/README.md`. */
const python = process.env["PLENUM_TEST_NNRP_PYTHON"];
const folder = fileURLToPath(new URL("nnrp-peer/", import.meta.url));

/** Why the peer can't run; undefined when it can. */
export const noPeer =
  python === undefined
    ? "PLENUM_TEST_NNRP_PYTHON is not set: it names a Python that has nnrp-py (tests/clients/nnrp-peer/README.md)"
    : undefined;
if (noPeer !== undefined) console.error(`!!! THE NNRP PEER IS NOT TESTED: ${noPeer}`);

/** What a program of the peer reports, a JSON object a line. */
type Line = Readonly<Record<string, unknown>> & { readonly event: string };

export interface PeerRun {
  readonly code: number | null;
  readonly lines: readonly Line[];
  /** How each request ended, in their order. */
  readonly outcomes: readonly unknown[];
}

const start = (program: string, words: readonly string[]) =>
  spawn(python ?? "", [program, ...words], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });

/**
 * Runs the peer's client to its end. `words` come before the requests, which are names of `requests/*.json`, or absolute
 * paths of such files.
 */
export async function runPeerClient(
  endpoint: string,
  requests: readonly string[],
  words: readonly string[] = [],
): Promise<PeerRun> {
  const files = requests.map((name) => (name.startsWith("/") ? name : `requests/${name}.json`));
  const child = start("client.py", [...words, endpoint, ...files]);
  const lines: Line[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(JSON.parse(line) as Line));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  const outcomes = lines.filter(({ event }) => event === "outcome").map(({ outcome }) => outcome);
  return { code, lines, outcomes };
}

export interface PeerServer {
  /** The addresses that were bound, by carrier. */
  readonly endpoints: Readonly<Record<string, string>>;
  /** What it reported so far. */
  readonly lines: readonly Line[];
  stop(): Promise<void>;
}

/** Starts the peer's server. */
export async function startPeerServer(
  endpoints: readonly string[],
  words: readonly string[] = [],
): Promise<PeerServer> {
  const child = start("server.py", [...endpoints, ...words]);
  const lines: Line[] = [];
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const bound = await new Promise<Readonly<Record<string, string>>>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (text) => {
      const line = JSON.parse(text) as Line;
      lines.push(line);
      if (line.event === "listening") resolve(line["endpoints"] as Readonly<Record<string, string>>);
    });
    child.once("close", (code) => reject(new Error(`The peer's server ended with ${code}`)));
  });
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  return { endpoints: bound, lines, stop };
}
