import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningService, startService } from "../e2e/service.ts";
import { ask } from "./ask.ts";

const address = process.env["PLENUM_TEST_VLLM"]?.replace(/\/+$/, "").replace(/\/v1$/, "");

/** Why there is no vLLM; undefined when there is one. */
export const noVllm =
  address === undefined
    ? "no vLLM: set PLENUM_TEST_VLLM to the address of a running one, such as http://127.0.0.1:8000 (tests/README.md)"
    : undefined;
if (noVllm !== undefined) console.error(`!!! NOT TRIED WITH VLLM: ${noVllm}`);

/** The running vLLM, and a service before it that has no other model. */
export interface BeforeVllm {
  readonly service: RunningService;
  readonly url: string;
  readonly version: string;
  /** The first that it serves. */
  readonly model: string;
  readonly contextTokens: number;
  /** Requests that it works on now. */
  running(): Promise<number>;
  stop(): Promise<void>;
}

export async function startBeforeVllm(): Promise<BeforeVllm> {
  const url = address ?? "";
  const [{ id: model, max_model_len: contextTokens }] = (await ask(url, "/v1/models")).data;
  const folder = await mkdtemp(join(tmpdir(), "plenum-vllm-"));
  const config = join(folder, "plenum.config.yaml");
  await writeFile(config, `runtimes:\n  vllm: { kind: vllm, url: "${url}" }\n`);
  const service = await startService({ models: [], args: ["--config", config] });
  return {
    service,
    url,
    version: (await ask(url, "/version")).version,
    model,
    contextTokens,
    async running() {
      const page = await (await fetch(`${url}/metrics`)).text();
      return Number(/^vllm:num_requests_running\{.*\} ([\d.]+)$/m.exec(page)?.[1]);
    },
    async stop() {
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
