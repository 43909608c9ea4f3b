/** What Ollama does when a client leaves a field out, and the numbers of this door: the one place for them. */
export const defaults = {
  /** Ollama whose API this door speaks; clients compare it with what they need. */
  version: "0.17.4",
  /** Chat and generate. */
  stream: true,
  /** What Ollama samples with when neither a request nor the model says otherwise. */
  sampling: { temperature: 0.8, topK: 40, topP: 0.9, minP: 0, repeatPenalty: 1.1, repeatLastN: 64 },
  /** A text that is too long for its embedding is cut. */
  truncateEmbeddings: true,
  /** What `think: true` asks for. */
  thinkEffort: "medium",
  /** `options.seed` that stands for a random one. */
  randomSeed: -1,
  /** Milliseconds after which a stream's headers leave even without output (LMSP §6). */
  headersAfterMs: 10_000,
  /** `expires_at` of a model that stays: Ollama shows an instant centuries ahead, and its clients print "Forever". */
  neverExpires: "2318-01-01T00:00:00Z",
} as const;
