import { mkdtemp, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer as createSocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { afterAll, expect, it } from "vitest";
import { waitFor } from "./service.ts";

const home = mkdtemp(join(tmpdir(), "plenum-loop-"));
const services: PlenumServer[] = [];
afterAll(async () => {
  for (const service of services) await service.close({ drainMs: 0 });
  await rm(await home, { recursive: true, force: true });
});

/** A service without models of its own whose only runtime is another service. */
async function start(name: string, port: number, upstream: number): Promise<PlenumServer> {
  const far = { kind: "nnrp", url: `ws://127.0.0.1:${upstream}/nnrp`, models: ["m"] };
  const config = await loadConfig({
    flags: { home: join(await home, name), port, starterModel: false, localRuntimes: false, logLevel: "silent" },
    preset: [
      { path: ["runtimes"], value: { far }, origin: name },
      { path: ["embedded", "enabled"], value: false, origin: name },
    ],
    env: {},
  });
  const service = await createServer(config);
  services.push(service);
  await service.listen();
  return service;
}

async function freePorts(count: number): Promise<number[]> {
  const sockets = Array.from({ length: count }, () => createSocketServer());
  await Promise.all(sockets.map((socket) => new Promise<void>((open) => socket.listen(0, "127.0.0.1", open))));
  const ports = sockets.map((socket) => (socket.address() as AddressInfo).port);
  await Promise.all(sockets.map((socket) => new Promise((closed) => socket.close(closed))));
  return ports;
}

function whyAway(service: PlenumServer): string | undefined {
  const [model] = service.core.catalog.list();
  return model?.stateDetail;
}

it("three services that ask each other in a circle: the one that closes it refuses, and says so", async () => {
  const [a = 0, b = 0, c = 0] = await freePorts(3);
  const last = await start("c", c, a);
  await start("b", b, c);
  await start("a", a, b);
  const sentence = await waitFor(() => {
    const detail = whyAway(last);
    return detail?.includes("leads back") ? detail : undefined;
  }, 20_000);
  expect(sentence).toMatch(/^Runtime far leads back to this service; /);
});

it("a service that is its own runtime", async () => {
  const [port = 0] = await freePorts(1);
  const service = await start("self", port, port);
  await waitFor(() => (whyAway(service)?.includes("leads back") ? true : undefined), 20_000);
});
