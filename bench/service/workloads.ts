/** What is asked of every target. The names are the harness's: its letter and the number of connections. */
export interface Workload {
  readonly name: string;
  readonly title: string;
  /** Configuration of the synthetic upstream. */
  readonly upstream: Readonly<Record<string, number | boolean>>;
  /** Flags of the load client; SECONDS stands for the round's length. */
  readonly flags: string;
  /** Figures of the table, as paths in the client's result. */
  readonly figures: readonly string[];
  /** The target is started anew before each round, so that its memory begins small. */
  readonly isFresh?: true;
}

const flat = { tokens: 128, gap_us: 0, track: false };
const paced = { tokens: 100, gap_us: 20_000, track: false };
const requests = ["req_per_s", "latency_ms.p50", "latency_ms.p99", "sut.cpu_us_per_req"];
const streams = ["tokens_per_s", "ttft_ms.p50", "sut.cpu_us_per_token", "sut.cpu_us_per_req"];
const delays = ["added_ms.p50", "added_ms.p99", "ttft_ms.p99", "sut.cpu_us_per_token"];

export const workloads: readonly Workload[] = [
  {
    name: "small",
    title: "whole answers of 1 KB, 16 at a time",
    upstream: flat,
    flags: "-c 16 -d SECONDS",
    figures: requests,
  },
  {
    name: "flat-out",
    title: "streams of 128 tokens as fast as they go, 16 at a time",
    upstream: flat,
    flags: "-stream -expect 128 -c 16 -d SECONDS",
    figures: streams,
  },
  {
    name: "paced",
    title: "256 streams, a token every 20 ms",
    upstream: paced,
    flags: "-stream -expect 100 -c 256 -n 256 -ramp 500ms -warmup 0s",
    figures: delays,
  },
  {
    name: "tools",
    title: "streams of a tool call in 128 pieces, 16 at a time",
    upstream: { ...flat, tool_calls: true },
    flags: "-stream -expect 128 -c 16 -d SECONDS",
    figures: streams,
  },
  {
    name: "long-prompt",
    title: "prompts of 1 MB, 4 at a time",
    upstream: flat,
    flags: "-c 4 -body-bytes 1000000 -d SECONDS",
    figures: requests,
  },
  {
    name: "embeddings",
    title: "2,048 vectors of 1,024 numbers (30 MB), 2 at a time",
    upstream: { embed_count: 2_048, embed_dims: 1_024, track: false },
    flags: "-proto embed -embed-inputs 2048 -body-bytes 50 -c 2 -n 6 -warmup 0s",
    figures: ["mb_per_s", "latency_ms.p50", "sut.cpu_us_per_req"],
  },
  {
    name: "cancel",
    title: "clients that close after 5 tokens, a token every 5 ms, one at a time",
    upstream: { tokens: 400, gap_us: 5_000, track: true },
    flags: "-stream -cancel-after 5 -c 1 -n 200",
    figures: ["cancel.abort_ms.p50", "cancel.abort_ms.p99", "cancel.never_aborted"],
  },
  {
    name: "idle",
    title: "2,000 streams that are open and silent",
    upstream: { tokens: 2, gap_us: 3_600_000_000, track: false },
    flags: "-stream -idle-streams 2000",
    figures: ["idle.open", "idle.sut.kb_per_stream", "idle.sut.idle_cpu_pct", "idle.active_after_close"],
    isFresh: true,
  },
  {
    name: "lmsp",
    title: "native streams of 128 tokens as fast as they go, 16 at a time",
    upstream: flat,
    // The text comes again in the events that close it, so tokens are not counted here.
    flags: "-proto lmsp -stream -c 16 -d SECONDS",
    figures: ["req_per_s", "ttft_ms.p50", "sut.cpu_us_per_req"],
  },
  {
    name: "ollama",
    title: "Ollama streams of 128 tokens as fast as they go, 16 at a time",
    upstream: flat,
    flags: "-proto ollama -stream -expect 128 -c 16 -d SECONDS",
    figures: streams,
  },
];

/** Members of the upstream's configuration that a workload does not name. */
export const upstreamDefaults = {
  tool_calls: false,
  embed_count: 1,
  embed_dims: 384,
  burst: 1,
  ttft_us: 0,
} as const;
