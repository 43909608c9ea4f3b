import { setTimeout as wait } from "node:timers/promises";
import { type ChatMessage, type StreamedAnswer, streamChat } from "./chat-stream.ts";
import type { FigureName } from "./figures.ts";
import { residentBytes } from "./processes.ts";
import type { Target } from "./targets.ts";

/** What every request of a run has in common. */
interface ExperimentSettings {
  /** End tokens of the model: barred, so that all answers are equally long. */
  readonly barred: readonly number[];
  /** Tokens of an answer where throughput is measured. */
  readonly answerTokens: number;
}

export interface Experiment {
  /** For `--only`. */
  readonly name: string;
  /** Numbers by figure; several where it was tried several times. */
  run(target: Target, settings: ExperimentSettings): Promise<Partial<Record<FigureName, readonly number[]>>>;
}

const topics = ["rivers", "bread", "clocks", "trains", "islands", "bees", "glass", "maps"];
/** About 1,000 tokens in the starter model's vocabulary. */
const longText = "The history of rivers in Europe is long and full of trade, floods, mills and bridges. ".repeat(50);
const streamCounts = [1, 2, 4, 8] as const;
const neighbours = 3;
const abortTries = 4;
/** Looking more often would take a core from what is measured. */
const pollMs = 10;
const shortestReadMs = 200;
const longestReadMs = 1_500;

export const experiments: readonly Experiment[] = [
  ...streamCounts.map(
    (streams): Experiment => ({
      name: `streams-${streams}`,
      run: async (target, settings) => ({ [`${streams} streams`]: [await throughput(target, settings, streams)] }),
    }),
  ),
  {
    name: "prompt",
    run: async (target, settings) => ({ "prompt alone": [promptRate(await readLongPrompt(target, settings))] }),
  },
  {
    name: "neighbours",
    run: (target, settings) =>
      besideStreams(target, settings, async (arrivals) => {
        const answer = await readLongPrompt(target, settings);
        return { "prompt beside 3 streams": [promptRate(answer)], "longest gap": [longestGap(arrivals, answer)] };
      }),
  },
  {
    name: "abort",
    run: async (target, settings) => ({ "abort alone": await abortPrompts(target, settings, 0) }),
  },
  {
    name: "abort-beside",
    run: (target, settings) =>
      besideStreams(target, settings, async () => ({
        "abort beside 3 streams": await abortPrompts(target, settings, neighbours),
      })),
  },
  { name: "turns", run: async (target, settings) => ({ "second turn": [await secondTurn(target, settings)] }) },
  {
    name: "memory",
    run: async (target) => (target.pids().length === 0 ? {} : memory(target)),
  },
];

/** Tokens a second of so many answers to new prompts, their reading included. */
async function throughput(target: Target, settings: ExperimentSettings, streams: number): Promise<number> {
  const startedAt = performance.now();
  const answers = await Promise.all(
    topics.slice(0, streams).map((topic) => write(target, settings, topic, settings.answerTokens)),
  );
  const tokens = answers.reduce((sum, { completionTokens }) => sum + completionTokens, 0);
  return (tokens / (performance.now() - startedAt)) * 1_000;
}

function write(
  target: Target,
  { barred }: ExperimentSettings,
  topic: string,
  maxTokens: number,
  signal?: AbortSignal,
  onText?: () => void,
): Promise<StreamedAnswer> {
  const messages = [unique(), user(`Write a long text about ${topic} and their history in Europe.`)];
  return streamChat(target.url, { model: target.model, messages, maxTokens, barred }, signal, onText);
}

function readLongPrompt(
  target: Target,
  { barred }: ExperimentSettings,
  signal?: AbortSignal,
  onText?: () => void,
): Promise<StreamedAnswer> {
  const messages = [unique(), user(`Summarise: ${longText}`)];
  return streamChat(target.url, { model: target.model, messages, maxTokens: 1, barred }, signal, onText);
}

function promptRate({ promptTokens, cachedTokens, sentAt, arrivals: [first = Number.NaN] }: StreamedAnswer): number {
  return ((promptTokens - cachedTokens) / (first - sentAt)) * 1_000;
}

/** Runs something while other answers stream; `arrivals` tells when their pieces came, a list for each. */
async function besideStreams<T>(
  target: Target,
  settings: ExperimentSettings,
  run: (arrivals: readonly (readonly number[])[]) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const arrivals = topics.slice(0, neighbours).map((): number[] => []);
  let onAllStarted: (() => void) | undefined;
  const allStarted = new Promise<void>((resolve) => {
    onAllStarted = resolve;
  });
  const streams = arrivals.map(async (list, index) => {
    const onText = () => {
      list.push(performance.now());
      if (arrivals.every(({ length }) => length >= 4)) onAllStarted?.();
    };
    // Longer than the experiment takes.
    await write(target, settings, topics[index] ?? "", 1_900, stop.signal, onText).catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    });
    if (!stop.signal.aborted) throw new Error("a neighbour ended before the experiment");
  });
  try {
    return await Promise.race([allStarted.then(() => run(arrivals)), Promise.all(streams).then(neverEnds)]);
  } finally {
    stop.abort();
    await Promise.allSettled(streams);
    await untilRunning(target, 0);
  }
}

function neverEnds(): never {
  throw new Error("the neighbours ended before the experiment");
}

/** Longest time in which a neighbour got nothing while a prompt was read. */
function longestGap(arrivals: readonly (readonly number[])[], { sentAt, endedAt }: StreamedAnswer): number {
  const gaps = arrivals.flatMap((list) => {
    const from = Math.max(
      0,
      list.findLastIndex((at) => at <= sentAt),
    );
    const times = list.slice(from).filter((at) => at <= endedAt);
    return [...times, endedAt].map((at, index) => at - (times[index - 1] ?? at));
  });
  return Math.max(...gaps);
}

/** Milliseconds from a lost connection until the sequence is given back, at some moment while a prompt is read. */
async function abortPrompts(target: Target, settings: ExperimentSettings, others: number): Promise<number[]> {
  const took: number[] = [];
  while (took.length < abortTries) {
    const stop = new AbortController();
    let isRead = false;
    const reading = readLongPrompt(target, settings, stop.signal, () => {
      isRead = true;
    }).catch(() => undefined);
    await wait(shortestReadMs + Math.random() * (longestReadMs - shortestReadMs));
    const abortedAt = performance.now();
    stop.abort();
    await reading;
    await untilRunning(target, others);
    if (!isRead) took.push(performance.now() - abortedAt);
  }
  return took;
}

async function untilRunning(target: Target, count: number): Promise<void> {
  do await wait(pollMs);
  while ((await target.running()) > count);
}

/** Tokens of the second turn that were read although the first turn had read or written them. */
async function secondTurn(target: Target, { barred }: ExperimentSettings): Promise<number> {
  const first = [unique(), user(`Summarise: ${longText}`)];
  const ask = (messages: readonly ChatMessage[]) =>
    streamChat(target.url, { model: target.model, messages, maxTokens: 24, barred });
  const one = await ask(first);
  const two = await ask([...first, { role: "assistant", content: one.text }, user("And in one word?")]);
  const known = one.promptTokens + one.completionTokens;
  return Math.max(0, known - two.cachedTokens);
}

function memory(target: Target): Partial<Record<FigureName, readonly number[]>> {
  const { sum, sharedOnce, anonymous } = residentBytes(target.pids());
  const mebibytes = (bytes: number) => [bytes / 2 ** 20];
  return {
    memory: mebibytes(sum),
    "memory, files once": mebibytes(sharedOnce),
    "memory, no files": mebibytes(anonymous),
  };
}

function user(content: string): ChatMessage {
  return { role: "user", content };
}

/** A beginning that no cache holds. */
function unique(): ChatMessage {
  return { role: "system", content: `${Math.random()}` };
}
