import type { LmspModel } from "@plenum/client";
import { table } from "../table.ts";
import type { BenchLevel, BenchResult, BenchSettings } from "./run-bench.ts";

/** Widest bar of the plot, in characters. */
const plotWidth = 40;
/** Eighths of a character. */
const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** The numbers and the plot for people. */
export function resultText(model: LmspModel, settings: BenchSettings, result: BenchResult, isDrawn: boolean): string {
  const { prompt, levels } = result;
  const rows = levels.map((level) => [
    String(level.parallel),
    rate(level.tokensPerSecond),
    rate(level.streamTokensPerSecond),
    ms(level.ttftMs),
    ms(level.worstTtftMs),
  ]);
  const headings = ["STREAMS", "TOKENS/S", "EACH", "TTFT", "WORST TTFT"];
  return [
    `${model.id}: medians of ${settings.rounds} rounds after a warm-up, up to ${settings.tokens} tokens an answer.`,
    "",
    `Prompt of ${prompt.inputTokens ?? "?"} tokens alone: ${ms(prompt.ttftMs)} to the first token, ${rate(prompt.tokensPerSecond)} prompt tokens/s.`,
    "",
    table([headings, ...rows]).trimEnd(),
    "",
    "Tokens/s over streams:",
    plot(levels, isDrawn),
    "",
    ...notes(model, levels).map((note) => `${note}\n`),
  ].join("\n");
}

/** A bar for each level, as long as its tokens a second. @param isDrawn false: in plain ASCII */
export function plot(levels: readonly BenchLevel[], isDrawn: boolean): string {
  const most = Math.max(0, ...levels.map(({ tokensPerSecond }) => tokensPerSecond ?? 0));
  const width = Math.max(...levels.map(({ parallel }) => String(parallel).length));
  const lines = levels.map(({ parallel, tokensPerSecond = 0 }) => {
    const length = most === 0 ? 0 : (tokensPerSecond / most) * plotWidth;
    const bar = isDrawn ? blocks(length) : "#".repeat(Math.round(length));
    return `${String(parallel).padStart(width)} |${bar.padEnd(plotWidth)} ${rate(tokensPerSecond)}`;
  });
  return lines.join("\n");
}

function blocks(length: number): string {
  const whole = Math.floor(length);
  return "█".repeat(whole) + (eighths[Math.floor((length - whole) * 8)] ?? "");
}

function notes(model: LmspModel, levels: readonly BenchLevel[]): readonly string[] {
  const places = model.limits.parallel;
  const widest = Math.max(...levels.map(({ parallel }) => parallel));
  const answers = levels.reduce((sum, level) => sum + level.answers, 0);
  const early = levels.reduce((sum, level) => sum + level.early, 0);
  const tokens = levels.reduce((sum, level) => sum + level.outputTokens, 0);
  return [
    ...(places && widest > places ? [`${model.id} runs ${places} at once; more wait, which their ttft shows.`] : []),
    ...(early > 0
      ? [
          `${early} of ${answers} answers ended before their limit (${tokens} tokens in all); rates count only while all streams ran.`,
        ]
      : []),
  ];
}

function rate(value: number | undefined): string {
  return value === undefined ? "-" : value.toFixed(value < 100 ? 1 : 0);
}

function ms(value: number | undefined): string {
  return value === undefined ? "-" : `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

/** The numbers for programs, in the spelling of the native interface. Null: it could not be measured. */
export function resultJson(model: LmspModel, settings: BenchSettings, { prompt, levels }: BenchResult): object {
  return {
    model: model.id,
    runtime: model.runtimes[0]?.id ?? null,
    settings: {
      parallel: settings.parallel,
      tokens: settings.tokens,
      rounds: settings.rounds,
      prompt_tokens: settings.promptTokens,
    },
    prompt: {
      input_tokens: prompt.inputTokens ?? null,
      ttft_ms: prompt.ttftMs ?? null,
      tokens_per_second: prompt.tokensPerSecond ?? null,
    },
    levels: levels.map((level) => ({
      parallel: level.parallel,
      tokens_per_second: level.tokensPerSecond ?? null,
      tokens_per_second_per_stream: level.streamTokensPerSecond ?? null,
      ttft_ms: level.ttftMs ?? null,
      worst_ttft_ms: level.worstTtftMs ?? null,
      answers: level.answers,
      ended_early: level.early,
      output_tokens: level.outputTokens,
    })),
  };
}
