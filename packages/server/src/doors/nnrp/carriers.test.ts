import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type Listener, listen } from "@plenum/nnrp/node";
import { createProfileClient } from "@plenum/profile";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bench, chat, messages, setUp } from "./testing/set-up.ts";

/** The door over real carriers, with the library's client. */
describe.each(["tcp", "websocket", "ipc"])("over %s", (carrier) => {
  let folder: string;
  let bench: Bench;
  let listener: Listener;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "plenum-nnrp-"));
    bench = setUp();
    const endpoints: Readonly<Record<string, string>> = {
      tcp: "tcp://127.0.0.1:0",
      websocket: "ws://127.0.0.1:0/nnrp",
      ipc: `unix://${folder}/door.sock`,
    };
    listener = await listen(bench.door.server, endpoints[carrier] ?? "");
  });
  afterAll(async () => {
    await listener.close();
    await bench.door.server.close();
    await rm(folder, { recursive: true });
  });

  it("streams, and names the carrier in the diagnostics", async () => {
    const connection = await connect(listener.endpoint);
    const client = createProfileClient(await connection.openSession());
    const stream = client.chat.stream({ model: "m-tiny", messages }, { diagnostics: true });
    let text = "";
    for await (const event of stream) if (event.type === "response.output_text.delta") text += event.delta;
    expect(text).toBe("Hello");
    expect(await stream.final()).toMatchObject({ choices: [{ message: { content: "Hello" } }] });
    expect(stream.call.diagnostics).toMatchObject({ transport: carrier, runtime: "scripted" });
    await connection.close();
  });

  it("a cancel reaches the backend", async () => {
    const { backend } = bench;
    const connection = await connect(listener.endpoint);
    const session = await connection.openSession();
    const times: number[] = [];
    for (let round = 0; round < 60; round += 1) {
      let sentAt = 0;
      let begun = (): void => {};
      const running = new Promise<void>((resolve) => {
        begun = resolve;
      });
      backend.answer = async function* (_request, signal) {
        yield [
          { type: "accepted", inputTokens: 1 },
          { type: "text", candidate: 0, delta: "a" },
        ];
        begun();
        await new Promise((_done, fail) => {
          signal.addEventListener("abort", () => {
            times.push(performance.now() - sentAt);
            fail(signal.reason);
          });
        });
      };
      const operation = session.submit({ body: chat() });
      await running;
      sentAt = performance.now();
      operation.cancel();
      await operation.ended;
    }
    times.sort((a, b) => a - b);
    expect(times).toHaveLength(60);
    const median = times[30]?.toFixed(2);
    process.stdout.write(`measured: cancel to the backend's abort over ${carrier}: median ${median} ms, of 60\n`);
    await connection.close();
  });
});
