/**
 * `npm run bench`: what the whole service costs beside a bare node:http server that writes the same bytes, in
 * interleaved rounds on this machine. Ratios of medians; absolute numbers depend on the machine and are only shown.
 *   npm run bench -- --rounds 9 --streams 16 --requests 200
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { tokensPerAnswer } from "./serve.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    streams: { type: "string", default: "16" },
    requests: { type: "string", default: "200" },
  },
});
const rounds = Number(values.rounds);
const streams = Number(values.streams);
const requests = Number(values.requests);

interface Target {
  readonly name: string;
  readonly url: string;
  readonly child: ChildProcess;
}

/** One round of one target. */
interface Round {
  readonly tokensPerSecond: number;
  readonly cpuMicrosPerToken: number;
  readonly firstByteMs: number;
}

function start(name: string): Promise<Target> {
  const child = fork(fileURLToPath(new URL("serve.ts", import.meta.url)), [name], {
    execArgv: ["--conditions=@plenum/source", "--import", "tsx"],
  });
  return new Promise((resolve, reject) => {
    child.once("message", (message: { url: string }) => resolve({ name, url: message.url, child }));
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}`)));
  });
}

function cpuMicros({ child }: Target): Promise<number> {
  return new Promise((resolve) => {
    child.once("message", ({ cpu }: { cpu: NodeJS.CpuUsage }) => resolve(cpu.user + cpu.system));
    child.send("cpu");
  });
}

async function ask(url: string): Promise<number> {
  const sentAt = performance.now();
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }),
  });
  let firstByteMs = 0;
  for await (const _chunk of answer.body ?? []) firstByteMs ||= performance.now() - sentAt;
  return firstByteMs;
}

async function run(target: Target): Promise<Round> {
  const firstBytes: number[] = [];
  let left = requests;
  const worker = async (): Promise<void> => {
    while (left-- > 0) firstBytes.push(await ask(target.url));
  };
  const cpuBefore = await cpuMicros(target);
  const beganAt = performance.now();
  await Promise.all(Array.from({ length: streams }, worker));
  const seconds = (performance.now() - beganAt) / 1_000;
  const tokens = requests * tokensPerAnswer;
  return {
    tokensPerSecond: tokens / seconds,
    cpuMicrosPerToken: ((await cpuMicros(target)) - cpuBefore) / tokens,
    firstByteMs: median(firstBytes),
  };
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

const targets = [await start("plenum"), await start("pipe")] as const;
const results = new Map<string, Round[]>(targets.map(({ name }) => [name, []]));
for (const target of targets) await run(target);
for (let round = 1; round <= rounds; round += 1) {
  for (const target of round % 2 === 0 ? targets : [...targets].reverse()) {
    results.get(target.name)?.push(await run(target));
  }
  process.stderr.write(`round ${round} of ${rounds}\r`);
}
for (const { child } of targets) child.disconnect();

const fields = ["tokensPerSecond", "cpuMicrosPerToken", "firstByteMs"] as const;
const summary = Object.fromEntries(
  fields.map((field) => {
    const [plenum = [], pipe = []] = [...results.values()];
    const perRound = plenum.map((round, index) => round[field] / (pipe[index]?.[field] ?? Number.NaN));
    return [
      field,
      {
        plenum: median(plenum.map((round) => round[field])),
        pipe: median(pipe.map((round) => round[field])),
        ratio: median(perRound),
      },
    ];
  }),
);
console.log(`${streams} streams of ${tokensPerAnswer} tokens, ${requests} requests a round, ${rounds} rounds`);
console.table(summary);
const folder = fileURLToPath(new URL("results/", import.meta.url));
await mkdir(folder, { recursive: true });
const facts = {
  node: process.version,
  cpus: cpus().length,
  cpu: cpus()[0]?.model,
  load: loadavg()[0],
  streams,
  requests,
};
await writeFile(
  `${folder}/streams.json`,
  `${JSON.stringify({ facts, summary, rounds: Object.fromEntries(results) }, null, 2)}\n`,
);
