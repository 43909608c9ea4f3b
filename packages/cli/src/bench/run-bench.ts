import type { Client, LmspModel } from "@plenum/client";
import { CommandError } from "../report-error.ts";
import { type MeasuredAnswer, measureAnswer } from "./measure-answer.ts";
import { answerRate, median, promptRate, roundRate, ttftMs } from "./rates.ts";
import { createFirstNumbers, numbersFor, requestOf, type Workload, workloadOf } from "./workload.ts";

export interface BenchSettings {
  /** Streams at once, each a level of its own. */
  readonly parallel: readonly number[];
  /** Longest answer. */
  readonly tokens: number;
  /** Counted rounds of each level. */
  readonly rounds: number;
  /** Length of a prompt, about. */
  readonly promptTokens: number;
}

export interface BenchOptions {
  readonly client: Client;
  readonly model: LmspModel;
  readonly settings: BenchSettings;
  readonly signal: AbortSignal;
  /** After each answer. */
  readonly onProgress: (progress: { readonly label: string; readonly done: number; readonly total: number }) => void;
}

/** Medians over the rounds; undefined: it could not be measured. */
export interface BenchLevel {
  readonly parallel: number;
  /** Of all streams together. */
  readonly tokensPerSecond: number | undefined;
  /** Of one of them. */
  readonly streamTokensPerSecond: number | undefined;
  readonly ttftMs: number | undefined;
  /** Longest of all rounds. */
  readonly worstTtftMs: number | undefined;
  readonly answers: number;
  /** Of these, answers that ended before their limit. */
  readonly early: number;
  /** Made in all counted answers. */
  readonly outputTokens: number;
}

export interface BenchResult {
  /** A prompt alone, answered with one token. */
  readonly prompt: {
    readonly inputTokens: number | undefined;
    readonly ttftMs: number | undefined;
    readonly tokensPerSecond: number | undefined;
  };
  readonly levels: readonly BenchLevel[];
}

/** Sizes of the two prompts that tell how many tokens a number takes. */
const probeNumbers = [8, 32] as const;

/**
 * Measures a model through its service, round by round; the first round is a warm-up and does not count.
 * @throws LmspError, CommandError; the signal's reason, when every stream has ended
 */
export async function runBench(options: BenchOptions): Promise<BenchResult> {
  const { settings, onProgress } = options;
  const { parallel, rounds } = settings;
  requireRoom(options.model, settings);
  const widest = Math.max(...parallel);
  const streams = parallel.reduce((sum, count) => sum + count, 0);
  const total = probeNumbers.length + widest + rounds + streams * rounds;
  let done = 0;
  let label = "Warming up";
  const step = () => onProgress({ label, done: ++done, total });
  const run = createRounds(options, step);

  const workload = await sizeWorkload(options, run);
  await run(workload, widest, settings.tokens);
  label = "Reading prompts";
  const alone: MeasuredAnswer[] = [];
  for (let round = 0; round < rounds; round++) alone.push(...(await run(workload, 1, 1)));
  const levels: BenchLevel[] = [];
  for (const count of parallel) {
    label = count === 1 ? "1 stream" : `${count} streams`;
    const results: (readonly MeasuredAnswer[])[] = [];
    for (let round = 0; round < rounds; round++) results.push(await run(workload, count, settings.tokens));
    levels.push(levelOf(count, results));
  }
  return {
    prompt: {
      inputTokens: median(alone.map(({ inputTokens }) => inputTokens)),
      ttftMs: median(alone.map(ttftMs)),
      tokensPerSecond: median(alone.map(promptRate)),
    },
    levels,
  };
}

type Round = (workload: Workload, count: number, maxTokens: number) => Promise<readonly MeasuredAnswer[]>;

/** Rounds of answers side by side. One that fails ends its neighbours, and none is left running. */
function createRounds({ client, signal }: BenchOptions, onAnswer: () => void): Round {
  const firstNumber = createFirstNumbers();
  return async (workload, count, maxTokens) => {
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    const answers = Array.from({ length: count }, async () => {
      try {
        const answer = await measureAnswer(client, requestOf(workload, maxTokens, firstNumber()), either);
        onAnswer();
        return answer;
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    });
    await Promise.allSettled(answers);
    signal.throwIfAborted();
    return Promise.all(answers);
  };
}

/** Loads the model, and finds the prompt that has about as many tokens as wanted. */
async function sizeWorkload({ model, settings }: BenchOptions, run: Round): Promise<Workload> {
  const [small, large] = probeNumbers;
  const counted = async (numbers: number) => {
    const [answer] = await run(workloadOf(model, numbers), 1, 1);
    return { numbers, tokens: answer?.inputTokens ?? 0 };
  };
  return workloadOf(model, numbersFor(settings.promptTokens, await counted(small), await counted(large)));
}

/** Before anything is sent: the service would refuse the first round only after the sizing. */
function requireRoom(model: LmspModel, { promptTokens, tokens }: BenchSettings): void {
  const room = model.limits.context_tokens;
  if (!room || promptTokens + tokens <= room) return;
  throw new CommandError(
    `A prompt of ${promptTokens} and an answer of ${tokens} tokens don't fit into the context of ${model.id}, ` +
      `${room} tokens: lower --prompt-tokens or --tokens.`,
  );
}

function levelOf(parallel: number, rounds: readonly (readonly MeasuredAnswer[])[]): BenchLevel {
  const answers = rounds.flat();
  const ttfts = answers.flatMap((answer) => ttftMs(answer) ?? []);
  return {
    parallel,
    tokensPerSecond: median(rounds.map(roundRate)),
    streamTokensPerSecond: median(answers.map(answerRate)),
    ttftMs: median(ttfts),
    worstTtftMs: ttfts.length === 0 ? undefined : Math.max(...ttfts),
    answers: answers.length,
    early: answers.filter(({ isEarly }) => isEarly).length,
    outputTokens: answers.reduce((sum, { outputTokens }) => sum + outputTokens, 0),
  };
}
