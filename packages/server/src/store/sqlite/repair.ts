import { startThread } from "./start-thread.ts";

export interface RepairReport {
  /** Where the damaged file is now, as it was. */
  readonly movedTo: string;
  /** Rows that could be read, by table. */
  readonly salvaged: Readonly<Record<string, number>>;
  /** False: something could not be read and is lost. */
  readonly isComplete: boolean;
}

/**
 * Makes a new database of what can be read of a damaged one, which is moved aside and never deleted.
 * @param file of a service that does not run.
 * @throws Error when there is none, it is in use or can't be moved, or the new one can't be written.
 */
export function repairSqlite(file: string): Promise<RepairReport> {
  const thread = startThread("repair", file);
  return new Promise((resolve, reject) => {
    let report: RepairReport | undefined;
    thread.once("message", (message: RepairReport) => {
      report = message;
    });
    thread.once("error", reject);
    // Only then the file is free again.
    thread.once("exit", () => report && resolve(report));
  });
}
