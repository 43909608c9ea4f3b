import type { Fetch } from "@plenum/client";

/** The signals that a command hears. */
export type StopSignal = "SIGINT" | "SIGTERM";

/** Everything that a command touches outside itself, so that tests can stand in for it. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What the command is for. */
  readonly output: Output;
  /** Progress, notes and errors. */
  readonly errors: Output;
  readonly input: Input;
  /** Default: the platform's own. */
  readonly fetch?: Fetch;
  /** Calls the listener for each signal instead of ending the process; the returned function ends that. */
  onSignal(listener: (signal: StopSignal) => void): () => void;
  /** The work goes on when nobody reads what is written: a service serves others. */
  outliveReader(): void;
  /** Ends the process at once. */
  exitNow(code: number): void;
}

export interface Output {
  write(text: string): void;
  /** A person reads along. */
  readonly isTerminal: boolean;
}

export interface Input {
  readonly isTerminal: boolean;
  /** Everything up to its end, as UTF-8. */
  readAll(): Promise<string>;
  /** Starts to ask for lines. */
  openLines(): Lines;
}

/** Lines that a person types. */
export interface Lines {
  /** The next line; undefined at the end of the input. */
  ask(prompt: string): Promise<string | undefined>;
  /** Calls the listener for each Ctrl-C instead of ending the input. */
  onInterrupt(listener: () => void): void;
  close(): void;
}

/** The text without what could steer a terminal: an answer or an error may carry anything. */
export function withoutControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
}

/** Text that steps back on a terminal; plain elsewhere. */
export function dim(output: Output, text: string): string {
  return output.isTerminal ? `\u001b[2m${text}\u001b[22m` : text;
}
