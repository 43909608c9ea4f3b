import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noPeer, type PeerServer, startPeerServer } from "./nnrp-peer.ts";

/** `plenum conformance nnrp --target` against the real peer's server, whose answers are a script that checks no request. */

const command = fileURLToPath(new URL("../../packages/cli/bin/plenum.mjs", import.meta.url));

interface CaseResult {
  readonly id: string;
  readonly outcome: string;
  readonly message: string;
}

let folder: string;
let peer: PeerServer;

async function judge(endpoint: string, model: string): Promise<ReadonlyMap<string, CaseResult>> {
  const [capabilities, output] = [join(folder, "capabilities.json"), join(folder, "report.json")];
  const operation = {
    name: "chat.completions.create",
    streaming: true,
    non_streaming: true,
    tool_calls: true,
    cancellation: true,
  };
  await writeFile(
    capabilities,
    JSON.stringify({
      profile: "openai-compatible",
      schema_version: "openai-compatible/1",
      compatibility_levels: [1],
      operations: [operation],
      models: [],
      extensions: [],
    }),
  );
  const words = ["--target", endpoint, "--capabilities", capabilities, "--model", model, "--output", output];
  const child = spawn(process.execPath, [command, "conformance", "nnrp", ...words], { stdio: "ignore" });
  // The script answers wrong requests as if they were right: some cases have to fail.
  expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(1);
  const { results } = JSON.parse(await readFile(output, "utf8")) as { readonly results: readonly CaseResult[] };
  return new Map(results.map((result) => [result.id, result]));
}

const why = noPeer === undefined ? "" : `, skipped: ${noPeer}`;

describe.skipIf(noPeer !== undefined)(`the real peer's server, judged${why}`, () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "plenum-judged-"));
    // The peer opens one address, or one of each carrier.
    peer = await startPeerServer(["tcp://127.0.0.1:0", "ws://127.0.0.1:0", `unix://${join(folder, "peer.sock")}`]);
  });
  afterAll(async () => {
    await peer?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it.each(["tcp", "websocket", "ipc"])(
    "over %s: what it does right is found right, packet by packet",
    async (carrier) => {
      const results = await judge(peer.endpoints[carrier] ?? "", "example-model");
      const right = [
        "openai-compatible.chat.streaming-text",
        "openai-compatible.chat.non-streaming",
        "openai-compatible.chat.invalid-body",
        "openai-compatible.chat.usage",
        "openai-compatible.chat.tool-call-delta",
        "diagnostics.unrequested",
        "negative.unknown-operation",
        "negative.invalid-json",
        "negative.oversized",
        "negative.stream-order",
      ];
      expect(right.map((id) => results.get(id))).toMatchObject(right.map(() => ({ outcome: "passed", message: "" })));
      expect(results.get("negative.schema-version")).toMatchObject({ outcome: "failed" });
    },
  );

  it("cancels a long answer of it, and finds that nothing comes after", async () => {
    // Long enough for a cancel, and no longer: every case asks this model.
    const text = await readFile(new URL("nnrp-peer/scripts/default.json", import.meta.url), "utf8");
    const script = join(folder, "script.json");
    await writeFile(script, text.replace('"repeat": 200', '"repeat": 30'));
    const slow = await startPeerServer(["tcp://127.0.0.1:0"], ["--script", script]);
    try {
      const results = await judge(slow.endpoints["tcp"] ?? "", "slow-model");
      for (const id of ["openai-compatible.chat.cancellation", "negative.late-events"]) {
        expect(results.get(id)).toMatchObject({ outcome: "passed" });
      }
    } finally {
      await slow.stop();
    }
  });
});
