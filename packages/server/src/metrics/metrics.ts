import type { Core, Observer, Response } from "@plenum/core";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const seconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const labels = ["door", "model"] as const;

/** Metrics in Prometheus' form, one registry for each service. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #responses = this.#counter("plenum_responses_total", "Responses that ended.", [...labels, "status", "code"]);
  readonly #tokens = this.#counter("plenum_tokens_total", "Tokens of ended responses and embeddings.", [
    ...labels,
    "direction",
  ]);
  readonly #firstToken = this.#histogram("plenum_ttft_seconds", "From acceptance to the first output.");
  readonly #interToken = this.#histogram("plenum_inter_token_latency_seconds", "Mean time between output tokens.");
  readonly #duration = this.#histogram("plenum_response_duration_seconds", "From acceptance to the end.");
  readonly #queueTime = this.#histogram("plenum_queue_seconds", "From acceptance to the start.");
  readonly #embeddings = this.#counter("plenum_embeddings_total", "Embedding requests that ended.", [
    ...labels,
    "code",
  ]);

  constructor() {
    collectDefaultMetrics({ register: this.#registry });
  }

  /** Values that are read when somebody asks. */
  watch(core: Core): void {
    this.#gauge("plenum_responses_active", "Responses that wait or run.", () => core.responses.active);
    this.#gauge("plenum_queue_length", "Requests that wait.", () => core.scheduler.queued);
    this.#gauge("plenum_running", "Requests that run.", () => core.scheduler.running);
    this.#gauge("plenum_event_log_bytes", "Bytes of event logs in memory.", () => core.log.bytes);
  }

  readonly observer: Observer = {
    responseStarted: ({ door, model, timings }) => {
      this.#queueTime.observe({ door, model }, (timings.queuedMs ?? 0) / 1000);
    },
    responseFirstOutput: ({ door, model, timings }) => {
      this.#firstToken.observe({ door, model }, (timings.firstTokenMs ?? 0) / 1000);
    },
    responseEnded: (response) => this.#noteEnd(response),
    embeddingEnded: ({ door, model, inputTokens, error }) => {
      this.#embeddings.inc({ door, model, code: error?.code ?? "" });
      this.#tokens.inc({ door, model, direction: "input" }, inputTokens);
    },
  };

  async text(): Promise<{ readonly contentType: string; readonly text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  #noteEnd({ door, model, status, problem, usage, timings }: Response): void {
    this.#responses.inc({ door, model, status, code: problem?.code ?? "" });
    this.#duration.observe({ door, model }, (timings.totalMs ?? 0) / 1000);
    if (usage === undefined) return;
    this.#tokens.inc({ door, model, direction: "input" }, usage.inputTokens);
    this.#tokens.inc({ door, model, direction: "output" }, usage.outputTokens);
    const { firstTokenMs, totalMs } = timings;
    if (usage.outputTokens > 1 && firstTokenMs !== undefined && totalMs !== undefined) {
      this.#interToken.observe({ door, model }, (totalMs - firstTokenMs) / (usage.outputTokens - 1) / 1000);
    }
  }

  #counter<T extends string>(name: string, help: string, labelNames: readonly T[]): Counter<T> {
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
  }

  #histogram(name: string, help: string): Histogram<"door" | "model"> {
    return new Histogram({ name, help, labelNames: [...labels], buckets: seconds, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }
}
