import { readEvents } from "./event-stream.ts";
import { LmspError } from "./problem.ts";

/** How a broken stream is taken up again. */
export interface ResumePolicy {
  /** Tries in a row that bring nothing new before `connection-lost`. Default 8; 0: never resumed. */
  readonly attempts: number;
  /** Milliseconds before the first try; each further one waits twice as long. Default 200. */
  readonly firstDelayMs: number;
  /** Milliseconds that no wait is longer than. Default 5000. */
  readonly maxDelayMs: number;
  /** Milliseconds without a byte after which a connection counts as lost. Default 45000; 0: never. */
  readonly silenceMs: number;
}

export const defaultResume: ResumePolicy = { attempts: 8, firstDelayMs: 200, maxDelayMs: 5000, silenceMs: 45_000 };

interface Followed<Event> {
  /** The first connection. */
  readonly first: Response;
  /** Sequence after which the first connection starts. */
  readonly after: number;
  /** Connects again, to what follows a sequence. */
  readonly reopen: (after: number) => Promise<Response>;
  /** Whether the stream ends with this event. */
  readonly isLast: (event: Event) => boolean;
  readonly policy: ResumePolicy;
  readonly signal: AbortSignal | undefined;
}

/**
 * Events of one response or task over as many connections as it takes: each numbered event once and in order, to the terminal
 * one.
 * @throws LmspError `connection-lost` after the allowed tries; the service's own problem when it refuses to go on, such
 * as `events-expired`; the signal's reason when aborted.
 */
export async function* follow<Event extends { readonly type: string }>({
  first,
  after,
  reopen,
  isLast,
  policy,
  signal,
}: Followed<Event>): AsyncGenerator<Event> {
  let last = after;
  let failures = 0;
  let connect = () => Promise.resolve(first);
  while (true) {
    let lost: unknown;
    try {
      const answer = await connect();
      // 204: it ended at or before `last`.
      if (answer.status === 204 || answer.body === null) return;
      checkIsEventStream(answer);
      for await (const event of readEvents<Event>(answer.body, policy.silenceMs)) {
        signal?.throwIfAborted();
        if ("sequence" in event && typeof event.sequence === "number") {
          // The end of a response that a crash cut may have a number below what was seen before it (LMSP §6).
          const isEndBefore = event.sequence <= last && isLast(event);
          if (event.sequence <= last && !isEndBefore) continue;
          if (!isEndBefore) checkNext(event.sequence, last);
          last = event.sequence;
          failures = 0;
        }
        yield event;
        if (isLast(event)) return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!canResume(error)) throw error;
      lost = error;
    }
    failures += 1;
    if (failures > policy.attempts) throw connectionLost(last, failures, lost);
    await wait(delayMs(failures, policy, lost), signal);
    connect = () => reopen(last);
  }
}

export function checkIsEventStream(answer: Response): void {
  const type = answer.headers.get("content-type") ?? "nothing";
  if (type.startsWith("text/event-stream")) return;
  const detail = `Expected a stream of events and got ${type}: is this address an LMSP service?`;
  throw new LmspError({ code: "invalid-answer", status: answer.status, detail });
}

function checkNext(sequence: number, last: number): void {
  if (sequence === last + 1) return;
  const detail = `The stream goes from event ${last} to ${sequence}: the service left something out.`;
  throw new LmspError({ code: "invalid-answer", detail });
}

function connectionLost(last: number, failures: number, cause: unknown): LmspError {
  const detail = `The connection broke after event ${last} and could not be resumed in ${failures} tries; read on with {after: ${last}}.`;
  return new LmspError({ code: "connection-lost", detail, cause });
}

const passingStatuses: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

/** A broken connection, or a refusal that passes; anything else that the service says is final. */
export function canResume(error: unknown): boolean {
  if (!(error instanceof LmspError)) return true;
  return error.code === "unreachable" || passingStatuses.has(error.status);
}

/** Doubles with each failure; half of it by chance, so that clients of one service don't come back all at once. */
export function delayMs(failures: number, policy: ResumePolicy, lost: unknown): number {
  const full = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (failures - 1));
  const asked = lost instanceof LmspError ? (lost.retryAfterMs ?? 0) : 0;
  return Math.max(Math.min(asked, policy.maxDelayMs), full / 2 + (Math.random() * full) / 2);
}

export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
