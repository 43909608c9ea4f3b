import { type Logger, pino } from "pino";
import pretty from "pino-pretty";
import type { Config } from "./config/index.ts";

/** One line an event; never a prompt, an answer or a token. */
export function createLogger({ level, format }: Config["log"]): Logger {
  const options = { level, base: null, redact: ["*.authorization", "*.token"] };
  if (format === "json") return pino(options);
  return pino(options, pretty({ colorize: process.stdout.isTTY, ignore: "pid,hostname", sync: true }));
}
