/** What a figure means, and what it has to be. */
export interface Figure {
  readonly unit: string;
  /** How the numbers of all rounds become one. @default "median" */
  readonly summary?: "p95" | "worst";
  /** Our number divided by llama-server's has to be at least or at most this. */
  readonly ratio?: { readonly atLeast: number } | { readonly atMost: number };
  /** Our own number has to be at most this. */
  readonly atMost?: number;
}

export const figures = {
  "1 streams": { unit: "tokens/s", ratio: { atLeast: 0.95 } },
  "2 streams": { unit: "tokens/s", ratio: { atLeast: 0.95 } },
  "4 streams": { unit: "tokens/s", ratio: { atLeast: 1 } },
  "8 streams": { unit: "tokens/s", ratio: { atLeast: 1 } },
  // With aborts below 100 ms, for which a lone prompt gives up some of its rate.
  "prompt alone": { unit: "tokens/s", ratio: { atLeast: 0.7 } },
  "prompt beside 3 streams": { unit: "tokens/s" },
  "longest gap": { unit: "ms", summary: "worst", atMost: 200 },
  "abort alone": { unit: "ms", summary: "p95", atMost: 100 },
  "abort beside 3 streams": { unit: "ms", summary: "p95", atMost: 100 },
  // The last sampled token and the template's line end after it were never in the cache.
  "second turn": { unit: "tokens read again", summary: "worst", atMost: 2 },
  memory: { unit: "MiB", ratio: { atMost: 1 } },
  "memory, files once": { unit: "MiB" },
  "memory, no files": { unit: "MiB" },
} as const satisfies Readonly<Record<string, Figure>>;

export type FigureName = keyof typeof figures;
