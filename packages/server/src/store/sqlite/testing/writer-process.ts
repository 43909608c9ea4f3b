/** Writes without an end and prints what was promised, until it is killed. */
import { createInterface } from "node:readline";
import { openSqliteStorage } from "../index.ts";
import { completed, delta, ended, limits, record } from "./fixtures-data.ts";

const [file = "", prefix = ""] = process.argv.slice(2);
const storage = await openSqliteStorage({ ...limits, file, onFault: (fault) => say(`fault ${fault ?? "none"}`) });

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** One task with its events and a line, one background response with its events: each promise is told when it holds. */
async function work(id: string): Promise<void> {
  const { tasks, responses, log } = storage;
  const task = {
    id: `task_${id}`,
    kind: "batch",
    owner: "ann",
    fairnessKey: "",
    request: "x".repeat(500),
    state: "running",
    attempt: 1,
    createdAt: Date.now(),
  } as const;
  await tasks.put(task);
  say(`task ${id}`);
  const first = record(`resp_${id}`, { request: { background: true }, response: { createdAt: Date.now() } });
  log.open(`resp_${id}`, 1, { isDurable: true });
  await responses.put(first);
  say(`response ${id}`);
  let last = 0;
  for (let piece = 1; piece <= 5; piece += 1) {
    last = log.append(`resp_${id}`, 1, last, [delta(`${piece}`), delta("x".repeat(200))]);
    await log.committed(`resp_${id}`, last);
    say(`event ${id} ${last}`);
    await tasks.appendEvent({ sequence: piece, type: "task.progress", atMs: piece, task });
    say(`progress ${id} ${piece}`);
    await tasks.putLine(task.id, { index: piece - 1, text: `${piece}` });
    say(`line ${id} ${piece - 1}`);
  }
  last = log.append(`resp_${id}`, 1, last, [completed(first)]);
  await log.committed(`resp_${id}`, last);
  await responses.put(ended(first, Date.now()));
  say(`ended ${id}`);
}

async function writer(lane: number): Promise<void> {
  for (let round = 0; ; round += 1)
    await work(`${prefix}_${lane}_${round}`).catch((error: Error) => say(`refused ${error.message}`));
}

// Streams that nobody waits for run beside it.
void (async () => {
  storage.log.open("resp_stream", 1, { isDurable: true });
  for (let last = 0; ; ) {
    last = storage.log.append("resp_stream", 1, last, [delta("token ")]);
    if (last % 50 === 0) say(`stream ${last}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
})();
for (let lane = 0; lane < 8; lane += 1) void writer(lane);
createInterface({ input: process.stdin }).once("close", () => process.exit(0));
