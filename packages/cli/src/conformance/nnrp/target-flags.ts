export interface TargetFlags {
  readonly target: string;
  /** A file or an HTTP address. */
  readonly capabilities?: string;
  readonly model?: string;
  readonly errorModel?: string;
  readonly token?: string;
  /** Seconds for each case. */
  readonly timeout: number;
  readonly output?: string;
  readonly emitVectors?: string;
  readonly json?: boolean;
}
