/** Share of the newest job in the running average: about the last ten count. */
const newest = 0.2;

/** How long jobs of each lane keep their slot, as a running average. A lane is a backend's model, so there are few. */
export class ServiceTimes {
  readonly #averages = new Map<string, number>();

  note(lane: string, ms: number): void {
    const before = this.#averages.get(lane);
    this.#averages.set(lane, before === undefined ? ms : before + newest * (ms - before));
  }

  /**
   * Milliseconds until the job at a place of the queue starts, when all slots are busy: each of them is free once in an
   * average service time. Undefined while no job of the lane has ended.
   * @param position from 1.
   * @param slots of the lane.
   */
  expectedWaitMs(lane: string, position: number, slots: number): number | undefined {
    const average = this.#averages.get(lane);
    return average === undefined ? undefined : Math.round((average * position) / slots);
  }
}
