/** Runs the real engine child in tests, below the backend: prompts are written out, no chat format takes part. */
import type { PromptPiece } from "../chat-format/index.ts";
import { callEngine } from "../engine-call.ts";
import { EngineProcess } from "../engine-process.ts";
import type { CandidateUsage, EngineConfig, EngineEvent, EngineFailure, GenerateMessage } from "../messages.ts";
import { samplingSettings } from "../parameters.ts";
import { chatModelFile } from "./model-files.ts";

export interface Answer {
  readonly texts: readonly string[];
  readonly events: readonly EngineEvent[];
  readonly reasons: readonly string[];
  readonly usages: readonly CandidateUsage[];
}

/** Why a call ended before its end. */
export class CallFailed extends Error {
  readonly failure: EngineFailure;

  constructor(failure: EngineFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

export function startEngine(config: Partial<EngineConfig> = {}): EngineProcess {
  const modelPath = chatModelFile();
  const defaults = { use: "text", contextTokens: 2_048, parallel: 4, vocabularySize: 49_152 } as const;
  return new EngineProcess({ model: "smollm2:135m", config: { modelPath, ...defaults, ...config } });
}

export type Settings = Partial<Omit<GenerateMessage, "type" | "id" | "prompt" | "sampling">> & {
  readonly sampling?: Parameters<typeof samplingSettings>[0];
};

export interface AskOptions {
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: EngineEvent) => void;
}

/** One user message in ChatML, greedy unless told otherwise. @throws CallFailed */
export function ask(
  engine: EngineProcess,
  text: string,
  settings: Settings = {},
  options: AskOptions = {},
): Promise<Answer> {
  return askPieces(engine, chatPieces(text), settings, options);
}

/** A prompt as it is, greedy unless told otherwise. @throws CallFailed */
export async function askPieces(
  engine: EngineProcess,
  pieces: readonly PromptPiece[],
  settings: Settings = {},
  options: AskOptions = {},
): Promise<Answer> {
  const { sampling, ...fields } = settings;
  const candidates = settings.candidates ?? 1;
  const texts = Array.from({ length: candidates }, () => "");
  const events: EngineEvent[] = [];
  const reasons: string[] = [];
  const usages: CandidateUsage[] = [];
  await callEngine({
    engine,
    signal: options.signal ?? new AbortController().signal,
    message: (id) => ({
      type: "generate",
      id,
      prompt: { kind: "pieces", pieces },
      stop: [],
      visibleTokens: [],
      ...fields,
      candidates,
      sampling: samplingSettings({ temperature: 0, ...sampling }),
    }),
    onEvent: (event) => {
      events.push(event);
      options.onEvent?.(event);
      if (event.type === "failed") throw new CallFailed(event.failure);
      if (event.type === "text") texts[event.candidate] = `${texts[event.candidate]}${event.text}`;
      if (event.type !== "done") return false;
      reasons[event.candidate] = event.reason;
      usages[event.candidate] = event.usage;
      return usages.filter((usage) => usage !== undefined).length === candidates;
    },
  });
  return { texts, events, reasons, usages };
}

export function chatPieces(text: string) {
  return [
    { text: "<|im_start|>user\n", parseSpecial: true },
    { text, parseSpecial: false },
    { text: "<|im_end|>\n<|im_start|>assistant\n", parseSpecial: true },
  ];
}
