import { connect as openSocket } from "node:net";
import { type Client, LmspError } from "@plenum/client";
import { addressOf, connect } from "../connection.ts";
import type { Surroundings } from "../surroundings.ts";
import type { Check } from "./check.ts";
import type { DoctorFlags, Places } from "./places.ts";

const answerMs = 3000;
const connectMs = 1000;

/** The service at the address, or why there is none. */
export async function checkService(
  flags: DoctorFlags,
  around: Surroundings,
  places: Places,
  version: string,
  signal: AbortSignal,
): Promise<Check> {
  const named = flags.url !== undefined || !!around.env["PLENUM_URL"];
  const address = named ? addressOf(flags, around.env) : `http://127.0.0.1:${places.port}`;
  const client = connect({ ...flags, url: address }, around);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
  const id = "service";
  try {
    const { service } = await client.service({ signal: limit });
    const other = service.software.version !== version;
    const models = await modelsText(client, limit);
    return {
      id,
      state: other || models.todo !== undefined ? "note" : "ok",
      detail: `Service: "${service.name}", Plenum ${service.software.version}, at ${address}${models.text}`,
      ...((other || models.todo !== undefined) && {
        todo: [...(other ? [`start it again, to have version ${version}`] : []), ...(models.todo ?? [])],
      }),
      data: { address, running: true, version: service.software.version, name: service.name },
    };
  } catch (error) {
    signal.throwIfAborted();
    return named ? absent(address, error) : await portCheck(address, places);
  }
}

async function modelsText(
  client: Client,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly todo?: readonly string[] }> {
  try {
    const { data } = await client.models.list({ signal });
    const loaded = data.filter(({ state }) => state === "loaded").map(({ id }) => id);
    return { text: `, models: ${data.length}, loaded: ${loaded.join(", ") || "none"}` };
  } catch (error) {
    const needsToken = error instanceof LmspError && (error.code === "unauthorized" || error.code === "forbidden");
    if (needsToken) return { text: ", which wants a token", todo: ["PLENUM_TOKEN=… plenum doctor"] };
    return { text: ", which does not tell its models" };
  }
}

function absent(address: string, error: unknown): Check {
  const detail = error instanceof LmspError ? error.detail : `Nothing answers in time at ${address}.`;
  const todo = ["check --url and PLENUM_URL, and whether the service runs there"];
  return { id: "service", state: "problem", detail: `Service: ${detail}`, todo, data: { address, running: false } };
}

/** No Plenum answers at our own port: is it free for one? */
async function portCheck(address: string, { port, host }: Places): Promise<Check> {
  const data = { address, running: false };
  if (port === 0 || !(await isTaken(port))) {
    const detail = `Service: not running; port ${port} on ${host} is free`;
    return { id: "service", state: "note", detail, todo: ["plenum serve"], data };
  }
  return {
    id: "service",
    state: "problem",
    detail: `Service: not running, and another program listens on port ${port}`,
    todo: [`plenum serve --port ${port + 1}   (or stop the other program)`],
    data: { ...data, taken: true },
  };
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = openSocket({ host: "127.0.0.1", port });
    const end = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.setTimeout(connectMs, () => end(false));
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}

/** Other runtimes on this machine, as the service would find them. */
export async function checkRuntimes({ config, port }: Places): Promise<Check> {
  const { findLocalRuntimes } = await import("@plenum/server");
  const named = config?.runtimes ?? [];
  const own = [`127.0.0.1:${port}`, ...named.map(({ url }) => url)];
  const found = await findLocalRuntimes({ own, takenNames: named.map(({ name }) => name), timeoutMs: 2000 });
  const isOff = config?.findLocalRuntimes === false;
  const lines = [
    ...named.map(({ name, kind, url }) => `${name} (${kind}) at ${url}, from the configuration`),
    ...found.map(({ name, kind, baseUrl }) => `${name} (${kind}) at ${baseUrl}${isOff ? ", left alone" : ""}`),
  ];
  return {
    id: "runtimes",
    state: "ok",
    detail: `Other runtimes: ${lines.length === 0 ? "none on the known ports" : lines.length}`,
    lines,
    data: {
      found: found.map(({ name, kind, baseUrl }) => ({ name, kind, url: baseUrl })),
      configured: named.map(({ name, kind, url }) => ({ name, kind, url })),
    },
  };
}
