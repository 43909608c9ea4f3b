import type { BackendEvent, BackendSink } from "@plenum/core";

type Usage = Extract<BackendEvent, { type: "usage" }>;

/** One of the answers, and where its events go. */
export interface Candidate {
  /** From 0. */
  readonly candidate: number;
  readonly sink: BackendSink;
  readonly signal: AbortSignal;
}

/**
 * Several answers from a server that makes one at a time: one call each, side by side. `accepted` is told once, usage
 * as the prompt once and all answers. The first failure stops the others; it rejects when all have ended.
 */
export async function runCandidates(
  count: number,
  { sink, signal }: Omit<Candidate, "candidate">,
  run: (one: Candidate) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  const usages: Usage[] = [];
  let isAccepted = false;
  const join = (events: readonly BackendEvent[]): void => {
    const passed = events.filter((event) => {
      if (event.type === "usage") usages.push(event);
      if (event.type !== "accepted") return event.type !== "usage";
      const isFirst = !isAccepted;
      isAccepted = true;
      return isFirst;
    });
    if (passed.length > 0) sink(passed);
  };
  const runs = Array.from({ length: count }, async (_, candidate) => {
    try {
      await run({ candidate, sink: join, signal: stop.signal });
    } catch (error) {
      // The first failure is the reason with which the others end.
      stop.abort(error);
      throw error;
    }
  });
  try {
    const ends = await Promise.allSettled(runs);
    if (ends.some(({ status }) => status === "rejected")) throw stop.signal.reason;
    sink([sum(usages)]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function sum(usages: readonly Usage[]): Usage {
  const total = (read: (usage: Usage) => number): number => usages.reduce((all, usage) => all + read(usage), 0);
  const longest = (read: (usage: Usage) => number | undefined): number =>
    Math.max(0, ...usages.map((one) => read(one) ?? 0));
  return {
    type: "usage",
    usage: {
      inputTokens: longest(({ usage }) => usage.inputTokens),
      outputTokens: total(({ usage }) => usage.outputTokens),
      cachedInputTokens: 0,
      reasoningTokens: total(({ usage }) => usage.reasoningTokens),
    },
    loadMs: longest(({ loadMs }) => loadMs),
    promptMs: longest(({ promptMs }) => promptMs),
    generationMs: longest(({ generationMs }) => generationMs),
  };
}
