/** Source of ids. */
export interface Ids {
  /** A fresh id of 24 letters and digits, not to be guessed. */
  unique(): string;
}
