import { createInterface } from "node:readline";
import type { Input, Lines, Output, Surroundings } from "./surroundings.ts";

/** The process that `plenum` runs in. */
export function processSurroundings(): Surroundings {
  const reader: Reader = { isNeeded: true };
  return {
    env: process.env,
    output: outputOf(process.stdout, reader),
    errors: outputOf(process.stderr, reader),
    outliveReader: () => {
      reader.isNeeded = false;
    },
    input: processInput(),
    onSignal(listener) {
      process.on("SIGINT", listener);
      process.on("SIGTERM", listener);
      return () => {
        process.off("SIGINT", listener);
        process.off("SIGTERM", listener);
      };
    },
    exitNow: (code) => process.exit(code),
  };
}

interface Reader {
  isNeeded: boolean;
}

function outputOf(stream: NodeJS.WriteStream, reader: Reader): Output {
  // A reader that goes away, such as `head`, is no mistake: what is left has no one to read it.
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (reader.isNeeded) process.exit(error.code === "EPIPE" ? 0 : 1);
  });
  return { write: (text) => void stream.write(text), isTerminal: stream.isTTY === true };
}

function processInput(): Input {
  return {
    isTerminal: process.stdin.isTTY === true,
    async readAll() {
      process.stdin.setEncoding("utf8");
      let text = "";
      for await (const chunk of process.stdin) text += String(chunk);
      return text;
    },
    openLines,
  };
}

function openLines(): Lines {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  let isOpen = true;
  reader.on("close", () => {
    isOpen = false;
  });
  return {
    ask: (prompt) =>
      new Promise((resolve) => {
        if (!isOpen) return resolve(undefined);
        const end = () => resolve(undefined);
        reader.once("close", end);
        reader.question(prompt, (line) => {
          reader.off("close", end);
          resolve(line);
        });
      }),
    onInterrupt: (listener) => void reader.on("SIGINT", listener),
    close: () => reader.close(),
  };
}
