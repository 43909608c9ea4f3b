import { parentPort, workerData } from "node:worker_threads";
import { accessOperations } from "./access.ts";
import { faultOf, openDatabase, pragma, Statements } from "./database.ts";
import { logOperations } from "./logs.ts";
import type { Batch, Fault, Outcome, ThreadMessage, ThreadOptions } from "./protocol.ts";
import { responseOperations } from "./responses.ts";
import { taskOperations } from "./tasks.ts";
import { evictOldest, upkeepOperations } from "./upkeep.ts";

/** The thread that owns the database: it alone waits for the disk. */

const { file, maxBytes } = workerData as ThreadOptions;

function say(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

function describe(error: unknown): Fault {
  return { kind: faultOf(error), message: error instanceof Error ? error.message : String(error) };
}

function serve(): void {
  const database = openDatabase(file, maxBytes);
  const statements = new Statements(database);
  const operations: Readonly<Record<string, (argument: never) => unknown>> = {
    ...responseOperations(statements),
    ...logOperations(statements),
    ...taskOperations(statements),
    ...accessOperations(statements),
    ...upkeepOperations(statements, maxBytes),
  };
  let isSynced: boolean | undefined;

  const transact = <T>(run: () => T): T => {
    database.exec("BEGIN IMMEDIATE");
    try {
      const value = run();
      database.exec("COMMIT");
      return value;
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  };
  const perform = ({ name, argument }: Batch["operations"][number]): Outcome => ({
    value: operations[name]?.(argument as never),
  });
  /** The cap is reached, not the end of the disk: what ended longest ago makes room. */
  const makeRoom = (): string[] => {
    const isCapped = pragma(database, "page_count") >= pragma(database, "max_page_count") - 16;
    return isCapped ? transact(() => evictOldest(statements)) : [];
  };
  const evicted: string[] = [];
  const transactWithRoom = <T>(run: () => T): T => {
    for (;;) {
      try {
        return transact(run);
      } catch (error) {
        const gone = faultOf(error) === "full" ? tryTo(makeRoom) : [];
        if (gone.length === 0) throw error;
        evicted.push(...gone);
      }
    }
  };
  const performAll = ({ operations: all }: Batch): readonly Outcome[] => {
    try {
      return transactWithRoom(() => all.map(perform));
    } catch {
      // One by one: what fails by itself does not take the others with it.
      return all.map((each) => attempt(() => transactWithRoom(() => perform(each))));
    }
  };

  parentPort?.on("message", (message: Batch | "close") => {
    if (message === "close") {
      database.close();
      parentPort?.close();
      return;
    }
    if (message.isSynced !== isSynced) {
      isSynced = message.isSynced;
      database.exec(`PRAGMA synchronous = ${isSynced ? "FULL" : "NORMAL"}`);
    }
    const outcomes = performAll(message);
    say({ type: "done", outcomes, evicted: evicted.splice(0) });
  });
}

function attempt(run: () => Outcome): Outcome {
  try {
    return run();
  } catch (error) {
    return { fault: describe(error) };
  }
}

function tryTo(run: () => string[]): string[] {
  try {
    return run();
  } catch {
    return [];
  }
}

try {
  serve();
  say({ type: "open" });
} catch (error) {
  say({ type: "refused", fault: describe(error) });
}
