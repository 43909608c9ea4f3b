import { mkdtemp, rm } from "node:fs/promises";
import { createServer as createSocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type NnrpServer } from "@plenum/nnrp";
import { type Listener, listen } from "@plenum/nnrp/node";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { runProgram } from "../program.ts";
import { fakeSurroundings } from "../testing/fake-surroundings.ts";

let home: string;
let server: NnrpServer;
let listener: Listener;
const begun: { readonly ended: Promise<unknown>; readonly stop: () => void }[] = [];

// The first to load the service waits for all of it, which on a busy machine takes longer than a test may.
beforeAll(async () => void (await import("@plenum/server")), 120_000);
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "plenum-bridge-"));
  server = createServer({ operation: answer });
  listener = await listen(server, "tcp://127.0.0.1:0");
});
afterEach(async () => {
  // A test that failed has left its service running.
  for (const { stop, ended } of begun.splice(0)) {
    stop();
    await ended;
  }
  await listener.close();
  await server.close();
  await rm(home, { recursive: true });
});

type Operation = Parameters<NonNullable<Parameters<typeof createServer>[0]["operation"]>>[0];

/** A service of one model that needs the token `right`. */
function answer(operation: Operation) {
  const text = new TextDecoder().decode(operation.payloads?.[0]?.bytes);
  const { operation: name, body, nnrp } = JSON.parse(text) as Record<string, Record<string, unknown> | undefined>;
  const send = (event: object, status = 200) => operation.result({ event: JSON.stringify(event) }, { status });
  if (nnrp?.["authorization"] !== "Bearer right") {
    const error = { type: "authentication_error", code: "invalid_api_key", message: "no" };
    send({ type: "response.error", error }, 401);
  } else if (String(name) === "models.list") {
    send({ type: "response.completed", body: { object: "list", data: [{ id: "far-model" }] } });
  } else {
    operation.partial(JSON.stringify({ type: "response.output_text.delta", index: 0, delta: "Hello" }));
    const message = { role: "assistant", content: "Hello" };
    send({
      type: "response.completed",
      body: { model: body?.["model"], choices: [{ message, finish_reason: "stop" }] },
    });
  }
  return {};
}

function bridge(...words: readonly string[]) {
  const around = fakeSurroundings({ env: { HOME: home, PLENUM_LOG_LEVEL: "silent" } });
  const ended = runProgram(["bridge", "--home", home, "--port", "0", ...words], around);
  begun.push({ ended, stop: () => around.send("SIGTERM") });
  return { around, ended };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test("a remote service's model answers at the local addresses of OpenAI and Ollama", async () => {
  const { around, ended } = bridge(listener.endpoint, "--token", "right");
  await until(() => around.written.output.includes("Ctrl-C"));
  const { output } = around.written;
  expect(output).not.toContain("GGUF");
  const url = output.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0] ?? "";
  const asked = { model: "far-model", messages: [{ role: "user", content: "Hi" }], stream: false };
  const ask = async (path: string): Promise<string> => {
    const headers = { "content-type": "application/json" };
    return await (await fetch(url + path, { method: "POST", headers, body: JSON.stringify(asked) })).text();
  };
  expect(JSON.parse(await ask("/v1/chat/completions"))).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
  expect(JSON.parse(await ask("/api/chat"))).toMatchObject({ message: { content: "Hello" } });
  around.send("SIGTERM");
  expect(await ended).toBe(0);
});

test("a refused token: said at once, without the token", async () => {
  const { around, ended } = bridge(listener.endpoint, "--token", "wrong-token");
  expect(await ended).toBe(1);
  expect(around.written.errors).toBe(
    "plenum: The remote service does not accept the token; pass another one with --token.\n",
  );
  expect(around.written.output).toBe("");
});

test("a service without a list of models needs their names", async () => {
  const levelOne = createServer({
    operation: (operation) => {
      const error = { type: "invalid_request_error", code: "unsupported_operation", message: "no" };
      operation.result({ event: JSON.stringify({ type: "response.error", error }) }, { status: 400 });
      return {};
    },
  });
  const there = await listen(levelOne, "tcp://127.0.0.1:0");
  const refused = bridge(there.endpoint);
  expect(await refused.ended).toBe(3);
  expect(refused.around.written.errors).toContain("has no list of models");
  const { around, ended } = bridge(there.endpoint, "--model", "a", "--model", "b");
  await until(() => around.written.output.includes("Ctrl-C"));
  const url = around.written.output.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0] ?? "";
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { readonly data: readonly { id: string }[] };
  expect(data.map(({ id }) => id)).toEqual(["a", "b"]);
  around.send("SIGTERM");
  expect(await ended).toBe(0);
  await there.close();
  await levelOne.close();
});

test("nobody there: exit code 3 and what to do", async () => {
  const socket = createSocketServer();
  await new Promise<void>((resolve) => socket.listen(0, "127.0.0.1", resolve));
  const address = socket.address();
  const port = typeof address === "object" ? address?.port : undefined;
  await new Promise((resolve) => socket.close(resolve));
  const { around, ended } = bridge(`nnrp://127.0.0.1:${port}`);
  expect(await ended).toBe(3);
  expect(around.written.errors).toContain("refuses connections");
});

test.each([["http://127.0.0.1:1"], ["nnrp://127.0.0.1"], ["ws://127.0.0.1:1/nnrp?token=hush"], ["far"]])(
  "%s is no address: exit code 2",
  async (url) => {
    const { around, ended } = bridge(url);
    expect(await ended).toBe(2);
    expect(around.written.errors).toContain("plenum bridge  runtimes.bridge.url: expected an address such as nnrp:");
    expect(around.written.errors).not.toContain("hush");
  },
);
