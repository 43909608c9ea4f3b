import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, watch } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { judge, playClient, playServer, type Scenario, scenarios } from "./nnrp-wire-suite.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const command = join(root, "packages/cli/bin/plenum.mjs");
const contracts = join(root, "packages/cli/contracts/openai-compatible-1/recipes");

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plenum-conformance-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function plenum(...words: readonly string[]): {
  readonly process: ChildProcess;
  readonly exit: Promise<number | null>;
} {
  const child = spawn(process.execPath, [command, "conformance", "nnrp", ...words], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  return { process: child, exit: new Promise((resolve) => child.once("exit", resolve)) };
}

/** Resolves when the file is there: it is renamed into place, whole. */
function appears(name: string): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!existsSync(join(folder, name))) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(folder, look);
    look();
  });
}

interface Manifest {
  readonly wire_conformance: {
    readonly modes: readonly string[];
    readonly capabilities: readonly string[];
    readonly transports: readonly { readonly name: string; readonly endpoint: string }[];
  };
}

/** What the suite's own schema says against a file, as sentences. */
function faultsOf(schema: string, value: unknown): readonly string[] {
  const file = new URL(`__fixtures__/nnrp-schemas/${schema}.schema.json`, import.meta.url);
  const ajv = new Ajv2020({ allErrors: true, strict: false });
  const validate = ajv.compile(JSON.parse(readFileSync(file, "utf8")));
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

async function openTarget(role: string) {
  const name = `${role}-${randomUUID()}.json`;
  const target = plenum("wire-target", "--role", role, "--ready-output", join(folder, name));
  await appears(name);
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, name), "utf8"));
  expect(faultsOf("wire-conformance-target", manifest)).toEqual([]);
  return { ...target, manifest };
}

/** The suite plays what is declared, and nothing else. */
function selected({ wire_conformance: declared }: Manifest): readonly Scenario[] {
  return scenarios.filter(
    ({ mode, transport, required_capabilities: needed }) =>
      declared.modes.includes(mode) &&
      declared.transports.some(({ name }) => name === transport) &&
      needed.every((token) => declared.capabilities.includes(token)),
  );
}

function locatorOf({ wire_conformance: { transports } }: Manifest, transport: string): string {
  const endpoint = transports.find(({ name }) => name === transport)?.endpoint ?? "";
  return transport === "tcp" ? `tcp://${endpoint}` : endpoint;
}

describe("a plan of the outside suite", () => {
  test("all eight recipes pass, each over a connection of its own", async () => {
    const cases = readdirSync(contracts).map((file) => {
      const text = readFileSync(join(contracts, file), "utf8");
      const model = JSON.parse(text).parameters?.MODEL_ID ?? "";
      return JSON.parse(text.replaceAll("$".concat("{MODEL_ID}"), model));
    });
    const plan = { profile: "openai-compatible", schema_version: "openai-compatible/1", adapter: "plenum", cases };
    await writeFile(join(folder, "plan.json"), JSON.stringify(plan));
    const run = plenum("api-profile", "--plan", join(folder, "plan.json"), "--output", join(folder, "results.json"));
    expect(await run.exit).toBe(0);
    const report = JSON.parse(readFileSync(join(folder, "results.json"), "utf8"));
    expect(faultsOf("api-profile-case-results", report)).toEqual([]);
    expect(faultsOf("api-profile-case-results", { ...report, results: [{}] })).not.toEqual([]);
    const { results, ...head } = report;
    expect(head).toEqual({ profile: plan.profile, schema_version: plan.schema_version, adapter: plan.adapter });
    expect(results.map(({ id, outcome, message }: Record<string, string>) => [id, outcome, message])).toEqual(
      cases.map(({ id }) => [id, "passed", ""]),
    );
    const cancelled = results.find(({ id }: { readonly id: string }) => id.endsWith("cancellation"));
    expect(cancelled.events.at(-1)).toEqual({ type: "response.cancelled", reason: "peer_cancelled" });
  });
});

describe("live scenarios of the outside suite", () => {
  test("those with the suite as client pass, and SIGTERM ends the target", async () => {
    const target = await openTarget("server");
    const played = selected(target.manifest);
    expect(played).toHaveLength(6);
    for (const scenario of played) {
      const frames = await playClient(scenario, locatorOf(target.manifest, scenario.transport));
      expect([scenario.id, judge(scenario, frames)]).toEqual([scenario.id, []]);
    }
    target.process.kill("SIGTERM");
    expect(await target.exit).toBe(0);
  });

  test("those with the suite as server pass, and the target ends by itself", async () => {
    const target = await openTarget("client");
    const played = selected(target.manifest);
    expect(played).toHaveLength(2);
    for (const scenario of played) {
      const frames = await playServer(scenario, locatorOf(target.manifest, scenario.transport));
      expect([scenario.id, judge(scenario, frames)]).toEqual([scenario.id, []]);
    }
    expect(await target.exit).toBe(0);
  });

  test("the harness can fail: a frame that is not allowed, one that is missing, another drop reason", async () => {
    const target = await openTarget("server");
    const cancel = scenarios.find(({ id }) => id === "wire.control.cancel-abort.client");
    const chat = scenarios.find(({ id }) => id === "wire.profile.openai-compatible.level1");
    if (cancel === undefined || chat === undefined) throw new Error("there is no such scenario");
    const frames = await playClient(cancel, locatorOf(target.manifest, "tcp"));
    expect(judge(chat, frames)).toEqual(expect.arrayContaining(["CANCEL is not allowed"]));
    expect(judge(cancel, frames.slice(0, -1))).toEqual([
      "RESULT_DROP_REASON is missing, or out of order",
      "drop reasons: ",
    ]);
    const other = { ...cancel, expect: { ...cancel.expect, result_drop_reason_code: 2 } };
    expect(judge(other, frames)).toEqual(["drop reasons: 3"]);
    target.process.kill("SIGTERM");
    expect(await target.exit).toBe(0);
  });
});
