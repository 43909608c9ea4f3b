import type { Core, DoorKind, Observer, Response } from "@plenum/core";
import type { NnrpServer, ServerLogEvent } from "@plenum/nnrp";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";

const seconds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const labels = ["door", "model"] as const;

/** What every response of one door and model counts in. */
interface ModelSeries {
  readonly completed: Counter.Internal;
  readonly inputTokens: Counter.Internal;
  readonly outputTokens: Counter.Internal;
  readonly queueTime: Histogram.Internal<"door" | "model">;
  readonly firstToken: Histogram.Internal<"door" | "model">;
  readonly interToken: Histogram.Internal<"door" | "model">;
  readonly duration: Histogram.Internal<"door" | "model">;
}

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
  readonly #nnrpEvents = this.#counter("plenum_nnrp_connection_events_total", "What happened to NNRP connections.", [
    "carrier",
    "event",
  ]);
  readonly #series = new Map<string, Map<string, ModelSeries>>();

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

  /** As above, of NNRP. */
  watchNnrp(server: Pick<NnrpServer, "connections" | "sessions" | "operations">): void {
    this.#gauge("plenum_nnrp_connections", "Open NNRP connections.", () => server.connections);
    this.#gauge("plenum_nnrp_sessions", "Open NNRP sessions.", () => server.sessions);
    this.#gauge("plenum_nnrp_operations", "NNRP operations in flight.", () => server.operations);
  }

  readonly nnrpObserver = ({ carrier, event }: ServerLogEvent): void => {
    this.#nnrpEvents.inc({ carrier, event });
  };

  readonly observer: Observer = {
    responseStarted: ({ door, model, timings }) => {
      this.#of(door, model).queueTime.observe((timings.queuedMs ?? 0) / 1000);
    },
    responseFirstOutput: ({ door, model, timings }) => {
      this.#of(door, model).firstToken.observe((timings.firstTokenMs ?? 0) / 1000);
    },
    responseEnded: (response) => this.#noteEnd(response),
    embeddingEnded: ({ door, model, inputTokens, error }) => {
      this.#embeddings.inc({ door, model, code: error?.code ?? "" });
      this.#of(door, model).inputTokens.inc(inputTokens);
    },
  };

  async text(): Promise<{ readonly contentType: string; readonly text: string }> {
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  #noteEnd({ door, model, status, problem, usage, timings }: Response): void {
    const series = this.#of(door, model);
    if (status === "completed") series.completed.inc();
    else this.#responses.inc({ door, model, status, code: problem?.code ?? "" });
    series.duration.observe((timings.totalMs ?? 0) / 1000);
    if (usage === undefined) return;
    series.inputTokens.inc(usage.inputTokens);
    series.outputTokens.inc(usage.outputTokens);
    const { firstTokenMs, totalMs } = timings;
    if (usage.outputTokens > 1 && firstTokenMs !== undefined && totalMs !== undefined) {
      series.interToken.observe((totalMs - firstTokenMs) / (usage.outputTokens - 1) / 1000);
    }
  }

  /** The series of one door and model; finding them by their labels costs more than counting. */
  #of(door: DoorKind, model: string): ModelSeries {
    let ofDoor = this.#series.get(door);
    if (ofDoor === undefined) {
      ofDoor = new Map();
      this.#series.set(door, ofDoor);
    }
    let series = ofDoor.get(model);
    if (series === undefined) {
      series = {
        completed: this.#responses.labels({ door, model, status: "completed", code: "" }),
        inputTokens: this.#tokens.labels({ door, model, direction: "input" }),
        outputTokens: this.#tokens.labels({ door, model, direction: "output" }),
        queueTime: this.#queueTime.labels({ door, model }),
        firstToken: this.#firstToken.labels({ door, model }),
        interToken: this.#interToken.labels({ door, model }),
        duration: this.#duration.labels({ door, model }),
      };
      ofDoor.set(model, series);
    }
    return series;
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
