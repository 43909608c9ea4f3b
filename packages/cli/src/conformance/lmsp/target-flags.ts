export interface TargetFlags {
  readonly token?: string;
  /** Of another principal. */
  readonly otherToken?: string;
  readonly model?: string;
  /** Seconds for each request. */
  readonly timeout: number;
  /** Only cases whose id begins with one of these. */
  readonly only?: readonly string[];
  readonly output?: string;
  readonly json?: boolean;
}
