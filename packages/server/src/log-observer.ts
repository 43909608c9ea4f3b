import type { CoreError, Observer, Response } from "@plenum/core";
import { problems } from "@plenum/core";
import type { Logger } from "pino";

/** Writes a line for each response's end. */
export function createLogObserver(logger: Logger): Observer {
  return {
    responseEnded: (response, error) => {
      const line = lineOf(response);
      if (error === undefined || problems[error.code].fault === "client") logger.info(line, "response ended");
      else logger.warn({ ...line, ...causeOf(error) }, "response failed");
    },
    fault: (error) => {
      logger.error({ cause: error instanceof Error ? (error.stack ?? error.message) : String(error) }, "fault");
    },
    taskEnded: ({ id, kind, state, attempt, problem, createdAt, finishedAt = createdAt }) => {
      const line = { task: id, kind, state, attempt, totalMs: finishedAt - createdAt, code: problem?.code };
      if (problem === undefined || problems[problem.code].fault === "client") logger.info(line, "task ended");
      else logger.warn(line, "task failed");
    },
    embeddingEnded: ({ door, model, inputTokens, totalMs, error }) => {
      logger.info({ door, model, inputTokens, totalMs, code: error?.code }, "embedding ended");
    },
  };
}

function lineOf(response: Response): object {
  const { id, door, model, status, usage, timings, problem } = response;
  return {
    id,
    door,
    model,
    status,
    code: problem?.code,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    queuedMs: timings.queuedMs,
    ttftMs: timings.firstTokenMs,
    totalMs: timings.totalMs,
  };
}

/** What the client does not see. */
export function causeOf(error: CoreError): object {
  const { cause, logDetail: detail } = error;
  if (cause === undefined) return { detail };
  return { detail, cause: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause) };
}
