/**
 * NNRP: our library's pair of processes beside the real peer's, and the service's NNRP door beside its own SSE door, in
 * interleaved rounds. The peer needs PLENUM_TEST_NNRP_PYTHON (tests/clients/nnrp-peer/README.md).
 *   PLENUM_TEST_NNRP_PYTHON=… npm run bench -- nnrp --rounds 5 --only pair
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Doors, type WayName, ways } from "./measure-doors.ts";
import {
  type CarrierName,
  carriers,
  measureOurSizes,
  measureOurs,
  measurePeerSizes,
  measurePeers,
} from "./measure-pair.ts";
import { peerPython } from "./peer.ts";
import {
  doorTable,
  type Figures,
  type Goal,
  goalTable,
  pairTable,
  type Results,
  Rounds,
  type Row,
  ratioOf,
} from "./table.ts";

const file = fileURLToPath(new URL("../results/nnrp.json", import.meta.url));
const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    /** `pair` or `doors`; the other keeps what the results file holds. */
    only: { type: "string" },
  },
});

const rounds = Number(flags.rounds);
const carrierNames = Object.keys(carriers) as CarrierName[];
const labels: Readonly<Record<CarrierName, string>> = { tcp: "TCP", websocket: "WebSocket", ipc: "IPC" };

function tell(name: string, figures: Figures): void {
  const told = Object.entries(figures).map(([figure, value]) => `${figure} ${value.toPrecision(4)}`);
  console.error(`${name}: ${told.join(", ")}`);
}

async function measurePair(): Promise<readonly Row[]> {
  const found = new Rounds();
  const note = (name: string, figures: Figures): void => {
    found.add(name, figures);
    tell(name, figures);
  };
  for (let round = 0; round < rounds; round += 1) {
    for (const carrier of carrierNames) {
      note(`Plenum, ${labels[carrier]}`, await measureOurs(carrier));
      if (peerPython !== undefined) note(`nnrp-py, ${labels[carrier]}`, await measurePeers(carrier));
    }
  }
  for (const carrier of carrierNames) {
    note(`Plenum, ${labels[carrier]}`, await measureOurSizes(carrier));
    if (peerPython !== undefined) note(`nnrp-py, ${labels[carrier]}`, await measurePeerSizes(carrier));
  }
  return found.rows();
}

async function measureDoors(): Promise<readonly Row[]> {
  const found = new Rounds();
  const names = Object.keys(ways) as WayName[];
  await withDoors(async (doors) => {
    // Nothing is warm in the first round, so it is thrown away.
    for (let round = -1; round < rounds; round += 1) {
      for (const name of names) {
        const figures = await doors.measure(name);
        if (round >= 0) found.add(name, figures);
        tell(`${name}, round ${round + 1}`, figures);
      }
    }
  });
  for (const name of names) {
    await withDoors(async (doors) => {
      const figures = await doors.measureSizes(name);
      found.add(name, figures);
      tell(name, figures);
    });
  }
  return found.rows();
}

async function withDoors(use: (doors: Doors) => Promise<void>): Promise<void> {
  const doors = await Doors.start();
  try {
    await use(doors);
  } finally {
    await doors.stop();
  }
}

function goalsOf({ pair, doors }: Pick<Results, "pair" | "doors">): readonly Goal[] {
  const goals: Goal[] = [];
  const atLeast = (what: string, limit: number, measured: number): void => {
    if (!Number.isNaN(measured)) goals.push({ what, wanted: `≥ ${limit}`, measured, isMet: measured >= limit });
  };
  const below = (what: string, limit: number, measured: number): void => {
    if (!Number.isNaN(measured)) goals.push({ what, wanted: `< ${limit}`, measured, isMet: measured < limit });
  };
  for (const label of Object.values(labels)) {
    const [ours, theirs] = [`Plenum, ${label}`, `nnrp-py, ${label}`];
    atLeast(`events/s beside the peer's, ${label}`, 3, ratioOf(pair, "events/s", ours, theirs));
    below(`round trip beside the peer's, ${label}`, 1, ratioOf(pair, "round trip, µs", ours, theirs));
    below(`KiB of an idle session, ${label}`, 8, figureOf(pair, ours, "idle session, KiB"));
  }
  for (const name of Object.keys(ways).filter((way) => way !== "SSE")) {
    atLeast(`streams/core beside SSE, ${name}`, 1, ratioOf(doors, "paced: streams/core", name, "SSE"));
  }
  return goals;
}

function figureOf(rows: readonly Row[], name: string, figure: string): number {
  return rows.find((row) => row.name === name)?.figures[figure] ?? Number.NaN;
}

async function readEarlier(): Promise<Partial<Results>> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    return {};
  }
}

if (peerPython === undefined) console.error("!!! PLENUM_TEST_NNRP_PYTHON is not set: the peer's rows are missing");
const earlier = await readEarlier();
const pair = flags.only === "doors" ? (earlier.pair ?? []) : await measurePair();
const doors = flags.only === "pair" ? (earlier.doors ?? []) : await measureDoors();
const facts = { node: process.version, cpus: cpus().length, cpu: cpus()[0]?.model, load: loadavg()[0], rounds };
const results: Results = { facts, pair, doors, goals: goalsOf({ pair, doors }) };
console.log([pairTable(results), doorTable(results), goalTable(results)].join("\n\n"));
await mkdir(fileURLToPath(new URL("../results/", import.meta.url)), { recursive: true });
await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
