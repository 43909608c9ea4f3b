/** What `plenum` ends with; `plenum --help` lists the same. */
export const exitCodes = {
  ok: 0,
  /** The service refused, or the work failed. */
  failure: 1,
  /** Wrong flags or a wrong configuration; nothing was started. */
  usage: 2,
  /** No service answers at the address. */
  unreachable: 3,
  /** Ctrl-C (128 + SIGINT). */
  interrupted: 130,
  /** 128 + SIGTERM, when it came twice. */
  terminated: 143,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
