/** What the service has to reach, as ratios within one run; a comparison with itself holds between workloads. */
export interface Goal {
  readonly workload: string;
  readonly figure: string;
  /** Absent: the figure itself. */
  readonly against?: { readonly target: string; readonly workload?: string };
  readonly atMost: number;
}

const cpuPerToken = "sut.cpu_us_per_token";
const cpuPerRequest = "sut.cpu_us_per_req";

export const goals: readonly Goal[] = [
  { workload: "paced", figure: cpuPerToken, against: { target: "portkey" }, atMost: 0.5 },
  { workload: "paced", figure: cpuPerToken, against: { target: "nginx" }, atMost: 4 },
  { workload: "paced", figure: "added_ms.p50", against: { target: "nginx" }, atMost: 2.5 },
  { workload: "paced", figure: "added_ms.p99", against: { target: "portkey" }, atMost: 0.2 },
  { workload: "flat-out", figure: cpuPerToken, against: { target: "portkey" }, atMost: 1 / 3 },
  { workload: "flat-out", figure: cpuPerToken, against: { target: "nginx" }, atMost: 3 },
  { workload: "small", figure: cpuPerRequest, against: { target: "portkey" }, atMost: 0.1 },
  { workload: "long-prompt", figure: cpuPerRequest, against: { target: "portkey" }, atMost: 0.5 },
  { workload: "embeddings", figure: cpuPerRequest, against: { target: "portkey" }, atMost: 0.5 },
  { workload: "idle", figure: "idle.sut.kb_per_stream", atMost: 48 },
  { workload: "cancel", figure: "cancel.abort_ms.p50", atMost: 2 },
  { workload: "cancel", figure: "cancel.never_aborted", atMost: 0 },
  { workload: "ollama", figure: cpuPerRequest, against: { target: "plenum", workload: "flat-out" }, atMost: 1.2 },
  { workload: "lmsp", figure: cpuPerRequest, against: { target: "plenum", workload: "flat-out" }, atMost: 1.2 },
];
