import { beforeEach, describe, expect, it } from "vitest";
import { MemoryBus } from "../memory/bus.ts";
import { createMemoryStorage } from "../memory/storage.ts";
import type { NearbyService } from "../ports/nearby.ts";
import { requestDefaults } from "../request/request.ts";
import { ScriptedBackend, scriptedModel } from "../testing/scripted-backend.ts";
import { createTestCore, testCaller } from "../testing/test-core.ts";
import type { RuntimeSettings } from "./runtime.ts";

const storageLimits = { bytesPerResponse: 8_388_608, bytesTotal: 268_435_456 };
const settings: RuntimeSettings = { id: "far", kind: "ollama", url: "http://10.0.0.7:11434", apiKey: "secret-key" };

let storage = createMemoryStorage(storageLimits);
let made: Made[] = [];
beforeEach(() => {
  storage = createMemoryStorage(storageLimits);
  made = [];
});

class Made extends ScriptedBackend {
  closed = false;
  override async close(): Promise<void> {
    this.closed = true;
  }
}

function setUp(services: readonly NearbyService[] = []) {
  const faults: unknown[] = [];
  const core = createTestCore({
    storage,
    backends: [new ScriptedBackend("own", [scriptedModel("m")]), new ScriptedBackend("named", [scriptedModel("n")])],
    observer: { fault: (error) => void faults.push(error) },
    runtimes: {
      described: [{ id: "named", url: "http://named", source: "config" }],
      create: ({ id, kind }) => {
        if (kind === "broken") throw new RangeError("can't be made");
        const backend = new Made(id, [scriptedModel(`${id}-model`), scriptedModel("m")]);
        made.push(backend);
        return backend;
      },
    },
    neighbourhood: { services: () => services, onChange: () => () => {} },
  });
  return { core, faults };
}

const nearby: NearbyService = {
  id: "9b1d0000-0000-4000-8000-000000000000",
  name: "Ana's Studio!",
  url: "http://10.0.0.7:7411",
  version: "1.0",
  auth: "none",
  kinds: ["lmsp"],
  addresses: ["10.0.0.7"],
  seenAtMs: 1,
  isGone: false,
};

describe("runtimes", () => {
  it("are listed in the catalog's order, with what they serve and where they are from", () => {
    const { core } = setUp();
    expect(core.runtimes.list()).toEqual([
      { id: "own", kind: "scripted", state: "healthy", models: ["m"], running: 0, capacity: 4, source: "config" },
      {
        id: "named",
        kind: "scripted",
        url: "http://named",
        state: "healthy",
        models: ["n"],
        running: 0,
        capacity: 4,
        source: "config",
      },
    ]);
  });

  it("are told as degraded or unavailable by their models, with the reason", () => {
    const down = { state: "unavailable", stateDetail: "Start it." } as const;
    const backend = new ScriptedBackend("own", [scriptedModel("a"), scriptedModel("b", down)]);
    const core = createTestCore({ backends: [backend] });
    expect(core.runtimes.list()).toMatchObject([{ state: "degraded", reason: "Start it." }]);
    backend.setModels([scriptedModel("b", down)]);
    expect(core.runtimes.list()).toMatchObject([{ state: "unavailable", reason: "Start it." }]);
  });

  it("that are added serve behind the others, and tell no secret", async () => {
    const { core } = setUp();
    let told = 0;
    core.runtimes.onChange(() => {
      told += 1;
    });
    const added = await core.runtimes.add(settings);
    expect(added).toMatchObject({ id: "far", url: settings.url, models: ["far-model", "far/m"], source: "added" });
    expect(JSON.stringify(core.runtimes.list())).not.toContain("secret");
    expect(told).toBeGreaterThan(0);
    expect(core.catalog.resolve("m").routes[0]?.backend.id).toBe("own");
    const owned = await core.responses.create(
      {
        ...requestDefaults,
        model: "far-model",
        input: { kind: "completion", prompt: "x", raw: true },
      },
      testCaller,
      "lmsp",
    );
    await owned.done;
    expect(made[0]?.requests).toHaveLength(1);
  });

  it("come back in a new process, in the order in which they were added", async () => {
    const { core } = setUp();
    await core.runtimes.add({ ...settings, id: "z" });
    await core.runtimes.add({ ...settings, id: "a" });
    await core.close(0);
    expect(made.every(({ closed }) => closed)).toBe(true);
    const again = setUp();
    await again.core.runtimes.restore();
    expect(again.core.runtimes.list().map(({ id }) => id)).toEqual(["own", "named", "z", "a"]);
    expect(again.core.runtimes.added[0]).toEqual({ ...settings, id: "z" });
    await again.core.runtimes.restore();
    expect(made).toHaveLength(4);
    expect(again.faults).toEqual([]);
  });

  it("that can't be made any more, or whose name is taken now, are told and passed over", async () => {
    const kept = { source: "added", addedAtMs: 1 };
    await storage.settings.set("runtime/x", { ...kept, settings: { ...settings, id: "x", kind: "broken" } });
    await storage.settings.set("runtime/own", { ...kept, settings: { ...settings, id: "own" } });
    await storage.settings.set("runtime/y", "nonsense");
    await storage.settings.set("runtime/z", { ...kept, settings: { ...settings, id: "z" } });
    const { core, faults } = setUp();
    await core.runtimes.restore();
    expect(core.runtimes.list().map(({ id }) => id)).toEqual(["own", "named", "z"]);
    expect(faults).toHaveLength(2);
    expect(JSON.stringify(faults)).not.toContain("secret");
  });

  it("leave the catalog when they are removed, and are closed when they are idle", async () => {
    const { core } = setUp();
    await core.runtimes.add(settings);
    await core.runtimes.remove("far");
    expect(core.catalog.find("far-model")).toBeUndefined();
    expect(await storage.settings.names("runtime/")).toEqual([]);
    await expect.poll(() => made[0]?.closed).toBe(true);
  });

  it.each([
    ["a taken id", () => setUp().core.runtimes.add({ ...settings, id: "own" }), "conflict"],
    ["removing one of the configuration", () => setUp().core.runtimes.remove("named"), "conflict"],
    ["removing an unknown one", () => setUp().core.runtimes.remove("x"), "not-found"],
    ["where none can be added", () => createTestCore({ backends: [] }).runtimes.add(settings), "unsupported-operation"],
  ])("refuse %s", async (_name, call, code) => {
    await expect(call()).rejects.toMatchObject({ code });
  });

  it("whose replacement can't be made stay as they are", async () => {
    const { core } = setUp();
    await core.runtimes.add(settings);
    await expect(core.runtimes.replace({ ...settings, kind: "broken" })).rejects.toThrow("can't be made");
    expect(core.runtimes.list().map(({ id }) => id)).toContain("far");
    expect(core.runtimes.added).toEqual([settings]);
  });

  it("of one storage are the same in every replica", async () => {
    const bus = new MemoryBus();
    const replica = () =>
      createTestCore({
        storage,
        bus,
        backends: [],
        runtimes: { described: [], create: ({ id }) => new Made(id, [scriptedModel(id)]) },
      });
    const [one, two] = [replica(), replica()];
    await one.runtimes.add(settings);
    await expect.poll(() => two.runtimes.list().map(({ id }) => id)).toEqual(["far"]);
    await two.runtimes.remove("far");
    await expect.poll(() => one.runtimes.list()).toEqual([]);
  });
});

describe("nearby services", () => {
  it("become runtimes by approval only, named after them", async () => {
    const { core } = setUp([nearby]);
    expect(core.nearby.list()).toEqual([{ ...nearby, state: "seen" }]);
    expect(core.runtimes.list()).toHaveLength(2);
    const runtime = await core.nearby.approve(nearby.id);
    expect(runtime).toMatchObject({ id: "ana-s-studio", url: nearby.url, source: "approved" });
    expect(core.nearby.list()).toMatchObject([{ state: "approved" }]);
    expect(core.runtimes.added).toMatchObject([{ kind: "lmsp", serviceId: nearby.id }]);
    expect(await core.nearby.approve(nearby.id)).toMatchObject({ id: "ana-s-studio" });
    expect(core.runtimes.list()).toHaveLength(3);
  });

  it("at another address must be approved again, and get the old key only where it was meant for", async () => {
    const services = [{ ...nearby, auth: "bearer" as const }];
    const { core } = setUp(services);
    await core.nearby.approve(nearby.id, { apiKey: "secret-key" });
    expect(await core.nearby.approve(nearby.id)).toMatchObject({ source: "approved" });
    services[0] = { ...nearby, auth: "bearer", url: "http://10.0.0.66:7411" };
    expect(core.nearby.list()).toMatchObject([{ state: "seen" }]);
    await expect(core.nearby.approve(nearby.id)).rejects.toMatchObject({
      code: "invalid-request",
      details: { param: "api_key" },
    });
    await core.nearby.approve(nearby.id, { apiKey: "another" });
    expect(core.runtimes.added).toMatchObject([{ url: "http://10.0.0.66:7411", apiKey: "another" }]);
  });

  it.each<[string, readonly NearbyService[], string]>([
    ["an unknown one", [], "not-found"],
    ["one that is gone", [{ ...nearby, isGone: true }], "conflict"],
    ["one that needs a token, without one", [{ ...nearby, auth: "bearer" }], "invalid-request"],
  ])("refuse %s", async (_name, services, code) => {
    await expect(setUp(services).core.nearby.approve(nearby.id)).rejects.toMatchObject({ code });
  });

  it.each([
    ["", "nearby"],
    ["***", "nearby"],
    ["own", "own-2"],
    ["x".repeat(200), "x".repeat(48)],
    ["Größe 2", "gr-e-2"],
  ])("of the name '%s' get an id that is free", async (name, id) => {
    const { core } = setUp([{ ...nearby, name }]);
    expect(await core.nearby.approve(nearby.id)).toMatchObject({ id });
  });
});

describe("a request that came through services", () => {
  const through = (id: string, via: readonly string[], state: "loaded" | "available" = "loaded") =>
    new ScriptedBackend(id, [scriptedModel("m", { via, state, details: { digest: `sha256:${"a".repeat(64)}` } })]);

  async function runOn(backends: readonly ScriptedBackend[], via?: readonly string[]): Promise<string | undefined> {
    const core = createTestCore({ backends });
    const input = { kind: "completion", prompt: "x", raw: true } as const;
    const request = { ...requestDefaults, model: "m", input, ...(via === undefined ? {} : { via }) };
    const owned = await core.responses.create(request, testCaller, "lmsp");
    return (await owned.done).runtime;
  }

  it("is not sent back to one of them", async () => {
    const backends = () => [through("a", ["A", "B"]), through("c", ["C"], "available")];
    expect(await runOn(backends())).toBe("a");
    expect(await runOn(backends(), ["X"])).toBe("a");
    expect(await runOn(backends(), ["B"])).toBe("c");
    await expect(runOn(backends(), ["B", "C"])).rejects.toMatchObject({ code: "model-not-found" });
  });

  it("nor are its embeddings", async () => {
    const capabilities = { ...scriptedModel("e").capabilities, embeddings: true };
    const core = createTestCore({
      backends: [new ScriptedBackend("a", [scriptedModel("e", { via: ["A"], capabilities })])],
    });
    const request = { model: "e", inputs: ["x"], truncate: false, priority: 0, runtimeOptions: {} };
    const { signal } = new AbortController();
    await expect(
      core.embeddings.create({ ...request, via: ["A"] }, testCaller, "openai", signal),
    ).rejects.toMatchObject({
      code: "model-not-found",
    });
    expect(await core.embeddings.create(request, testCaller, "openai", signal)).toMatchObject({ model: "e" });
  });
});
