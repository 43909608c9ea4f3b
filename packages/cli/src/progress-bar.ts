import { SingleBar } from "cli-progress";
import type { Output } from "./surroundings.ts";

/** How far some work is. */
export interface ProgressStep {
  /** What is done; with another one the display starts anew. */
  readonly label: string;
  readonly done: number;
  /** More than 0. */
  readonly total: number;
  /** What is counted, such as `MiB`. */
  readonly unit: string;
}

/** Shows progress: as a bar on a terminal, else as a line for each quarter. */
export interface ProgressBar {
  readonly update: (step: ProgressStep) => void;
  end(): void;
}

/** Makes the display; nothing is shown before the first update. */
export function createProgressBar(output: Output): ProgressBar {
  return output.isTerminal ? barOf() : linesOf(output);
}

function barOf(): ProgressBar {
  const format = "{label}  [{bar}] {percentage} %  {value} of {total} {unit}";
  const bar = new SingleBar({ format, barsize: 30, hideCursor: true, stream: process.stderr, clearOnComplete: false });
  let shown: string | undefined;
  return {
    update({ label, done, total, unit }) {
      const words = { label, unit };
      if (shown === label) return bar.update(Math.floor(done), words);
      if (shown !== undefined) bar.stop();
      shown = label;
      bar.start(Math.ceil(total), Math.floor(done), words);
    },
    end: () => bar.stop(),
  };
}

function linesOf(output: Output): ProgressBar {
  let told = "";
  return {
    update({ label, done, total, unit }) {
      const percent = Math.floor((4 * done) / total) * 25;
      const line = `${label}: ${percent} % of ${Math.ceil(total)} ${unit}\n`;
      if (line !== told) output.write(line);
      told = line;
    },
    end() {},
  };
}
