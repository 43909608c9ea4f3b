import type { Clock } from "../ports/clock.ts";
import { CoreError } from "../problems/core-error.ts";
import { pickNext, type Waiting } from "./pick-next.ts";
import { ServiceTimes } from "./service-times.ts";

/** One unit of work that waits for a slot. */
export interface Job {
  /** Jobs of one lane share its slots: a backend's model. */
  readonly lane: string;
  /** Slots of the lane, read anew at each decision. */
  readonly capacity: () => number;
  readonly fairnessKey: string;
  readonly priority: number;
  /** True: it was accepted before, so a full queue takes it all the same. @default false */
  readonly wasAccepted?: boolean;
  /** Runs the work; the slot is free again when the promise settles. Must not reject. */
  readonly run: () => Promise<void>;
  /**
   * Place in the queue, from 1, and the wait that is expected there in milliseconds, where it is known; called when the
   * place changes while the job waits.
   */
  readonly onPosition?: (position: number, expectedWaitMs: number | undefined) => void;
}

/** A job in the scheduler's hands. */
export interface ScheduledJob {
  /** Takes it out of the queue. @returns true when it still waited. */
  withdraw(): boolean;
  /** Counts for a job that still waits; how long it has waited stays. */
  changePriority(priority: number): void;
}

export interface SchedulerLimits {
  /** Jobs that may wait in all lanes together. */
  readonly queued: number;
  /** Jobs that may wait for one fairness key. */
  readonly queuedPerKey: number;
}

interface Queued extends Waiting<Job> {
  /** Place that it was told last. */
  position: number;
}

interface Lane {
  running: number;
  /** Running jobs of each key. */
  readonly runningByKey: Map<string, number>;
  readonly waiting: Queued[];
  /** Starts that each key has had, for fairness; only keys that wait or run are kept. */
  readonly served: Map<string, number>;
}

/**
 * Bounded queues with priority, ageing and fairness (LMSP §5): higher priority first, equal ones fairly between keys and
 * in order of arrival within one; waiting raises the priority, so nothing starves.
 */
export class Scheduler {
  readonly #clock: Clock;
  readonly #limits: SchedulerLimits;
  readonly #lanes = new Map<string, Lane>();
  readonly #queuedByKey = new Map<string, number>();
  readonly #serviceTimes = new ServiceTimes();
  #queued = 0;
  #arrivals = 0;

  constructor(clock: Clock, limits: SchedulerLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Starts the job now or queues it.
   * @throws CoreError overloaded when the queue is full.
   */
  submit(job: Job): ScheduledJob {
    if (!job.wasAccepted) this.requireRoom(job);
    const lane = this.#lane(job.lane);
    const waiting: Queued = {
      job,
      arrival: this.#arrivals++,
      enqueuedAt: this.#clock.now(),
      fairnessKey: job.fairnessKey,
      priority: job.priority,
      position: 0,
    };
    this.#admitKey(lane, job.fairnessKey);
    lane.waiting.push(waiting);
    this.#count(job.fairnessKey, 1);
    this.#dispatch(job.lane, lane);
    return {
      withdraw: () => this.#withdraw(waiting),
      changePriority: (priority) => {
        waiting.priority = priority;
      },
    };
  }

  /** Jobs that wait, in all lanes. */
  get queued(): number {
    return this.#queued;
  }

  get running(): number {
    let running = 0;
    for (const lane of this.#lanes.values()) running += lane.running;
    return running;
  }

  /** Whether a job of the lane runs or waits. */
  isBusy(laneName: string): boolean {
    return this.#lanes.has(laneName);
  }

  /** Jobs that run in the lanes of one backend. */
  runningAt(backendId: string): number {
    let running = 0;
    for (const [name, lane] of this.#lanes) if (name.startsWith(`${backendId}/`)) running += lane.running;
    return running;
  }

  /** Looks again at a lane whose capacity may have grown. */
  wake(laneName: string): void {
    const lane = this.#lanes.get(laneName);
    if (lane !== undefined) this.#dispatch(laneName, lane);
  }

  /**
   * What `submit` would refuse. A job that would start at once needs no place in the queue.
   * @throws CoreError overloaded
   */
  requireRoom(job: Pick<Job, "lane" | "capacity" | "fairnessKey">): void {
    const { queued, queuedPerKey } = this.#limits;
    const lane = this.#lanes.get(job.lane);
    if (lane === undefined || (lane.waiting.length === 0 && lane.running < capacityOf(job))) return;
    if (this.#queued >= queued) {
      throw new CoreError("overloaded", `${queued} requests wait already; try again soon.`, {
        limit: queued,
        retryAfterMs: this.#untilPlaceMs(job),
      });
    }
    if ((this.#queuedByKey.get(job.fairnessKey) ?? 0) >= queuedPerKey) {
      throw new CoreError("overloaded", `${queuedPerKey} requests of yours wait already; try again when some ended.`, {
        limit: queuedPerKey,
        retryAfterMs: this.#untilPlaceMs(job),
      });
    }
  }

  /** Milliseconds until the lane takes another job from the queue. */
  #untilPlaceMs(job: Pick<Job, "lane" | "capacity">): number {
    return Math.max(leastRetryMs, this.#serviceTimes.expectedWaitMs(job.lane, 1, capacityOf(job)) ?? unknownRetryMs);
  }

  #lane(name: string): Lane {
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      lane = { running: 0, runningByKey: new Map(), waiting: [], served: new Map() };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  /** A key that comes new starts level with the least served one: it neither owes nor is owed the past. */
  #admitKey(lane: Lane, key: string): void {
    if (lane.waiting.some((waiting) => waiting.fairnessKey === key)) return;
    const others = lane.waiting.map((waiting) => lane.served.get(waiting.fairnessKey) ?? 0);
    const level = others.length === 0 ? 0 : Math.min(...others);
    lane.served.set(key, Math.max(lane.served.get(key) ?? 0, level));
  }

  #dispatch(name: string, lane: Lane): void {
    while (lane.waiting.length > 0) {
      const [first] = lane.waiting;
      if (first === undefined || lane.running >= capacityOf(first.job)) break;
      const index = pickNext(lane.waiting, lane.served, this.#clock.now());
      const [next] = lane.waiting.splice(index, 1);
      if (next === undefined) break;
      this.#start(name, lane, next);
    }
    this.#tellPositions(name, lane);
    if (lane.running === 0 && lane.waiting.length === 0) this.#lanes.delete(name);
  }

  #start(name: string, lane: Lane, { job }: Waiting<Job>): void {
    this.#count(job.fairnessKey, -1);
    lane.running += 1;
    add(lane.served, job.fairnessKey, 1);
    add(lane.runningByKey, job.fairnessKey, 1);
    const startedAt = this.#clock.now();
    const free = (): void => {
      this.#serviceTimes.note(name, this.#clock.now() - startedAt);
      lane.running -= 1;
      add(lane.runningByKey, job.fairnessKey, -1);
      this.#forgetKey(lane, job.fairnessKey);
      this.#dispatch(name, lane);
    };
    job.run().then(free, free);
  }

  #withdraw(waiting: Queued): boolean {
    const lane = this.#lanes.get(waiting.job.lane);
    const index = lane?.waiting.indexOf(waiting) ?? -1;
    if (lane === undefined || index < 0) return false;
    lane.waiting.splice(index, 1);
    this.#count(waiting.fairnessKey, -1);
    this.#forgetKey(lane, waiting.fairnessKey);
    this.#dispatch(waiting.job.lane, lane);
    return true;
  }

  #forgetKey(lane: Lane, key: string): void {
    if (lane.runningByKey.has(key) || lane.waiting.some(({ fairnessKey }) => fairnessKey === key)) return;
    lane.served.delete(key);
  }

  #count(key: string, change: 1 | -1): void {
    this.#queued += change;
    add(this.#queuedByKey, key, change);
  }

  /** Order of arrival stands for the place; fairness and priority may serve it sooner. */
  #tellPositions(name: string, lane: Lane): void {
    for (const [index, waiting] of lane.waiting.entries()) {
      const position = index + 1;
      if (waiting.position === position) continue;
      waiting.position = position;
      const { job } = waiting;
      job.onPosition?.(position, this.#serviceTimes.expectedWaitMs(name, position, capacityOf(job)));
    }
  }
}

/** Milliseconds until a retry, where no job has ended that could tell more. */
const unknownRetryMs = 1_000;
const leastRetryMs = 100;

function capacityOf(job: Pick<Job, "capacity">): number {
  return Math.max(1, job.capacity());
}

/** Counts for a key; keys at 0 are not kept. */
function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
