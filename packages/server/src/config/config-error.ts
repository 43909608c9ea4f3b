/** The configuration can't be used. `message` holds all lines; each says where, what is wrong and what is expected. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** One line for each mistake, in the order of the file. */
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join("\n"));
    this.lines = lines;
  }
}
