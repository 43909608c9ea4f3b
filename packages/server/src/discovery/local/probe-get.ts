import { type IncomingMessage, request } from "node:http";

/** What a program on a port answered. */
export interface ProbeAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
  /** Undefined: the text is no JSON. */
  readonly body: unknown;
}

/** Bytes of an answer that are read; what is longer is none that is looked for. */
const maxAnswerBytes = 1024 * 1024;

/**
 * Asks one path over a connection of its own. Follows no redirect, so that nothing but this port is contacted.
 * @returns undefined for everything that is no whole HTTP answer, and once the signal has aborted
 */
export function probeGet(port: number, path: string, signal: AbortSignal): Promise<ProbeAnswer | undefined> {
  return new Promise((resolve) => {
    const none = (): void => resolve(undefined);
    const asked = request(
      { host: "127.0.0.1", port, path, agent: false, signal, headers: { accept: "application/json" } },
      (answer) => {
        answer.once("error", none);
        collect(answer, resolve);
      },
    );
    asked.once("error", none);
    asked.once("close", none);
    asked.end();
  });
}

function collect(answer: IncomingMessage, resolve: (answer: ProbeAnswer | undefined) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  answer.on("data", (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > maxAnswerBytes) answer.destroy();
    else chunks.push(chunk);
  });
  answer.once("end", () => {
    const text = Buffer.concat(chunks).toString("utf8");
    resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, body: parsed(text) });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Web pages stand on such ports too.
    return undefined;
  }
}
