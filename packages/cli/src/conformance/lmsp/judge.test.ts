import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { DeterministicBackend } from "@plenum/server/conformance";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "../../program.ts";
import { fakeSurroundings } from "../../testing/fake-surroundings.ts";
import { judge } from "./judge.ts";
import { faults, faultToken } from "./testing/faults.ts";
import { startFaultyProxy } from "./testing/faulty-proxy.ts";

const otherToken = "second-token-of-the-tests";
let home: string;
let server: PlenumServer;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-judge-"));
  const config = await loadConfig({
    flags: { host: "127.0.0.1", port: 0, home, logLevel: "silent" },
    env: { PLENUM_FIND_LOCAL_RUNTIMES: "false" },
  });
  const token = (principal: string, secret: string) => ({
    principal,
    tokenSha256: createHash("sha256").update(secret).digest("hex"),
    scopes: ["read", "infer"] as const,
  });
  server = await createServer(
    {
      ...config,
      embedded: { ...config.embedded, enabled: false },
      findLocalRuntimes: false,
      auth: { tokens: [token("ann", faultToken), token("bob", otherToken)] },
    },
    { backends: [new DeterministicBackend()] },
  );
  await server.listen();
});

afterAll(async () => {
  await server.close({ drainMs: 0 });
  await rm(home, { recursive: true, force: true });
});

const judged = (baseUrl: string, only?: readonly string[]) =>
  judge({ baseUrl, token: faultToken, otherToken, timeoutMs: 15_000, only });

describe("conformance to LMSP", () => {
  it("finds nothing wrong with this service, and skips only what it does not have", async () => {
    const results = await judged(server.url);
    expect(results.filter(({ outcome }) => outcome === "failed")).toEqual([]);
    expect(results.filter(({ outcome }) => outcome === "skipped")).toEqual([]);
    expect(results.length).toBeGreaterThan(40);
  }, 60_000);

  it.each(faults)(
    "catches it when $name",
    async (fault) => {
      const proxy = await startFaultyProxy(server.url, fault);
      try {
        const results = await judged(proxy.url, [fault.caughtBy]);
        expect(results.some(({ outcome }) => outcome === "failed")).toBe(true);
      } finally {
        await proxy.close();
      }
    },
    120_000,
  );

  it("says in a report and by its exit code what it found", async () => {
    const around = fakeSurroundings({});
    const words = [
      "conformance",
      "lmsp",
      server.url,
      "--token",
      faultToken,
      "--only",
      "discovery",
      "--only",
      "catalog",
    ];
    expect(await runProgram(words, around)).toBe(0);
    expect(around.written.output).toContain("7 passed, 0 failed, 0 skipped");
    const wrong = fakeSurroundings({});
    expect(await runProgram(["conformance", "lmsp", server.url, "--token", "wrong", "--only", "catalog"], wrong)).toBe(
      1,
    );
    expect(wrong.written.output).toMatch(/FAILED\s+catalog\.list\s+§4\s+It answers 401/);
    const nobody = fakeSurroundings({});
    expect(await runProgram(["conformance", "lmsp", "http://127.0.0.1:1"], nobody)).toBe(3);
  }, 60_000);
});
