import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { ScriptedBackend, scriptedModel, textAnswer } from "@plenum/core/testing";
import { connect } from "@plenum/nnrp/node";
import { createProfileClient } from "@plenum/profile";
import { createServer, loadConfig, type PlenumServer } from "@plenum/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitFor } from "./service.ts";

let home: string;
let service: PlenumServer;
let ca: string;
const services: PlenumServer[] = [];

/** By openssl, which is everywhere these tests run; Node can't make certificates. */
function makeCertificate(folder: string): { readonly cert: string; readonly key: string } {
  const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  const names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
  const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const where = ["-keyout", files.key, "-out", files.cert, "-subj", "/CN=localhost", "-addext", names];
  execFileSync("openssl", [...words, ...where], { stdio: "ignore" });
  return files;
}

async function start(name: string, preset: readonly (readonly [readonly string[], unknown])[], backends: boolean) {
  const scripted = new ScriptedBackend("scripted", [scriptedModel("m")]);
  scripted.answer = textAnswer(["Hel", "lo"]);
  const config = await loadConfig({
    flags: { home: join(home, name), port: 0, starterModel: false, localRuntimes: false, logLevel: "silent" },
    preset: [
      { path: ["embedded", "enabled"], value: false, origin: name },
      ...preset.map(([path, value]) => ({ path, value, origin: name })),
    ],
    env: {},
  });
  const made = await createServer(config, backends ? { backends: [scripted] } : {});
  services.push(made);
  await made.listen();
  return made;
}

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-nnrp-tls-"));
  await mkdir(join(home, "pems"));
  const tls = makeCertificate(join(home, "pems"));
  ca = await readFile(tls.cert, "utf8");
  const listen = ["tls://127.0.0.1:0", "wss://127.0.0.1:0/secure"];
  service = await start(
    "tls",
    [
      [["tls"], tls],
      [["nnrp", "listen"], listen],
    ],
    true,
  );
});

afterAll(async () => {
  for (const each of services.toReversed()) await each.close({ drainMs: 0 });
  await rm(home, { recursive: true, force: true });
});

const addressOf = (scheme: string): string =>
  service.interfaces.find(({ kind, url }) => kind === "nnrp" && url.startsWith(`${scheme}:`))?.url ?? "";

/** A page of the service, whose HTTP port has the certificate too. */
async function read(path: string): Promise<string> {
  const answer = await new Promise<IncomingMessage>((done, fail) =>
    get(`${service.url}${path}`, { ca }, done).once("error", fail),
  );
  return text(answer);
}

async function say(url: string): Promise<string> {
  const connection = await connect(url, { tls: { ca } });
  try {
    const client = createProfileClient(await connection.openSession());
    let said = "";
    const stream = client.chat.stream({ model: "m", messages: [{ role: "user", content: "Hi" }] });
    for await (const event of stream) if (event.type === "response.output_text.delta") said += event.delta;
    return said;
  } finally {
    await connection.close();
  }
}

describe.each(["nnrps", "wss"])("%s", (scheme) => {
  it("answers who trusts its certificate, and the service document names it", async () => {
    const url = addressOf(scheme);
    expect(await say(url)).toBe("Hello");
    const document = JSON.parse(await read("/.well-known/lmsp")) as { interfaces: readonly { url: string }[] };
    expect(document.interfaces.map((each) => each.url)).toContain(url);
  });

  it("is not used by who does not trust it, or calls it by another name", async () => {
    const url = addressOf(scheme);
    await expect(connect(url)).rejects.toMatchObject({ code: "connect-failed" });
    if (scheme === "wss") return;
    const elsewhere = { tls: { ca, serverName: "elsewhere.example" } };
    await expect(connect(url, elsewhere)).rejects.toMatchObject({ code: "connect-failed" });
  });

  it("harms nobody by what is no TLS", async () => {
    const plain = addressOf(scheme).replace("nnrps", "tcp").replace("wss", "ws");
    await expect(connect(plain)).rejects.toThrow();
    expect(await say(addressOf(scheme))).toBe("Hello");
  });

  it("is a runtime of another service, by its `ca`", async () => {
    const far = { kind: "nnrp", url: addressOf(scheme), ca: join(home, "pems/cert.pem") };
    const bridge = await start(`bridge-${scheme}`, [[["runtimes"], { far }]], false);
    const model = await waitFor(() => bridge.core.catalog.list().find(({ state }) => state === "available"));
    expect(model.id).toBe("m");
    const answer = await fetch(`${bridge.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
  });
});

it("a runtime whose certificate is not trusted is away, and says why", async () => {
  const far = { kind: "nnrp", url: addressOf("nnrps"), models: ["m"] };
  const bridge = await start("untrusting", [[["runtimes"], { far }]], false);
  const said = () => bridge.core.catalog.list()[0]?.stateDetail ?? "";
  await waitFor(() => (said().includes("TLS certificate is not accepted") ? true : undefined));
});

it("counts connections, sessions and operations by themselves", async () => {
  const value = async (name: string): Promise<number> => {
    const page = await read("/metrics");
    return Number(
      page
        .split("\n")
        .find((line) => line.startsWith(`${name} `))
        ?.split(" ")[1],
    );
  };
  const connection = await connect(addressOf("nnrps"), { tls: { ca } });
  await connection.openSession();
  const before = await value("plenum_nnrp_connections");
  expect(before).toBeGreaterThan(0);
  expect(await value("plenum_nnrp_sessions")).toBeGreaterThan(0);
  expect(await value("plenum_nnrp_operations")).toBe(0);
  const opened = await value('plenum_nnrp_connection_events_total{carrier="tcp",event="connection-opened"}');
  expect(opened).toBeGreaterThanOrEqual(before - 1);
  await connection.close();
  await waitFor(async () => ((await value("plenum_nnrp_connections")) < before ? true : undefined));
});

it("takes a certificate that was exchanged, for new connections", async () => {
  const before = ca;
  makeCertificate(join(home, "pems"));
  ca = await readFile(join(home, "pems/cert.pem"), "utf8");
  for (const scheme of ["nnrps", "wss"]) {
    const answer = await waitFor(() => say(addressOf(scheme)).catch(() => undefined), 20_000);
    expect(answer).toBe("Hello");
    await expect(connect(addressOf(scheme), { tls: { ca: before } })).rejects.toMatchObject({ code: "connect-failed" });
  }
});
