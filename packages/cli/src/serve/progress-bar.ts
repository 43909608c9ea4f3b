import type { FetchProgress } from "@plenum/server";
import { SingleBar } from "cli-progress";
import type { Output } from "../surroundings.ts";

const mebibyte = 1024 * 1024;

/** Shows a download: as a bar on a terminal, else as a line for each quarter. */
export interface ProgressBar {
  readonly update: (progress: FetchProgress) => void;
  end(): void;
}

/** Makes the display; nothing is shown before the first update. */
export function createProgressBar(label: string, output: Output): ProgressBar {
  return output.isTerminal ? barOf(label) : linesOf(label, output);
}

function barOf(label: string): ProgressBar {
  const format = `${label} from {source}  [{bar}] {percentage} %  {done} of {size} MiB`;
  const bar = new SingleBar({ format, barsize: 30, hideCursor: true, stream: process.stderr, clearOnComplete: false });
  let source: FetchProgress["source"] | undefined;
  return {
    update(progress) {
      const words = {
        source: sourceName(progress.source),
        done: Math.floor(progress.doneBytes / mebibyte),
        size: Math.ceil(progress.totalBytes / mebibyte),
      };
      if (source !== progress.source) {
        if (source !== undefined) bar.stop();
        source = progress.source;
        bar.start(progress.totalBytes, progress.doneBytes, words);
      } else bar.update(progress.doneBytes, words);
    },
    end: () => bar.stop(),
  };
}

function linesOf(label: string, output: Output): ProgressBar {
  let told = "";
  return {
    update({ source, doneBytes, totalBytes }) {
      const percent = Math.floor((4 * doneBytes) / totalBytes) * 25;
      const line = `${label} from ${sourceName(source)}: ${percent} % of ${Math.ceil(totalBytes / mebibyte)} MiB\n`;
      if (line !== told) output.write(line);
      told = line;
    },
    end() {},
  };
}

function sourceName(source: FetchProgress["source"]): string {
  return source === "hub" ? "huggingface.co" : "the Python index";
}
