/** A service in a network namespace of its own; the test asks it what it sees, since it can't be reached from outside. */
import { createClient, outputText } from "@plenum/client";
import { discover } from "@plenum/client/node";
import { ScriptedBackend, scriptedModel, textAnswer } from "@plenum/core/testing";
import { createServer, loadConfig } from "@plenum/server";

// It lives until the test lets go of it.
process.channel?.ref();

const { PLENUM_TEST_NAME: name = "", PLENUM_TEST_HOME: home = "", PLENUM_TEST_MODEL: model = "" } = process.env;

const config = await loadConfig({
  flags: {
    home,
    host: "0.0.0.0",
    port: 0,
    starterModel: false,
    localRuntimes: false,
    insecureOpen: true,
    logFormat: "json",
  },
  preset: [
    { path: ["name"], value: name, origin: "test" },
    { path: ["embedded", "enabled"], value: false, origin: "test" },
  ],
  env: {},
});
const backend = new ScriptedBackend("own", [scriptedModel(model)]);
backend.answer = textAnswer([`${name} `, "answers"]);
const service = await createServer(config, { backends: [backend] });
await service.listen();
const client = createClient({ baseUrl: `http://127.0.0.1:${new URL(service.url).port}` });

const calls: Readonly<Record<string, (argument: string) => Promise<unknown>>> = {
  id: async () => (await client.service()).service.id,
  nearby: async () => (await client.nearby.list()).data,
  approve: (id) => client.nearby.approve(id),
  runtimes: async () => (await client.runtimes.list()).data,
  models: async () => (await client.models.list()).data.map(({ id }) => id),
  ask: async (wanted) => outputText(await client.responses.create({ model: wanted, input: "hi" })),
  discover: async () => (await discover({ timeoutMs: 2_000 })).map(({ id, baseUrl }) => ({ id, baseUrl })),
  close: () => service.close({ drainMs: 0 }),
};

process.on(
  "message",
  async (message: { readonly call: string; readonly argument: string; readonly number: number }) => {
    const { call, argument, number } = message;
    try {
      process.send?.({ number, value: await calls[call]?.(argument) });
    } catch (error) {
      process.send?.({ number, error: String(error) });
    }
    if (call === "close") process.disconnect();
  },
);
process.send?.({ number: 0 });
