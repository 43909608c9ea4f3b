/** One measured number. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  /** Such as `ns an event`. */
  readonly unit: string;
}

/** What is measured together. */
export interface Part {
  readonly name: string;
  run(): Promise<readonly Figure[]>;
}
