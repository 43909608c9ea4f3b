import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

/** A server that is not ours. */
export interface Peer {
  readonly url: string;
  /** Ends it when the tests started it; else leaves it alone. */
  stop(): Promise<void>;
}

/** A peer that runs already. */
export function runningPeer(url: string): Peer {
  return { url: url.replace(/\/+$/, ""), stop: () => Promise.resolve() };
}

/**
 * Starts a peer by a script that prints its base URL when it is ready, stays in the foreground and ends on a signal.
 * The first start may build the peer.
 */
export async function startPeer(script: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<Peer> {
  const child = spawn("bash", [script, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let faults = "";
  child.stderr.on("data", (chunk: Buffer) => {
    faults += chunk.toString();
    process.stderr.write(chunk);
  });
  const ended = new Promise<number | null>((done) => child.once("close", (code) => done(code)));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith("http://")) resolve(line);
    });
    void ended.then((code) => reject(new Error(`${script} ended with ${code}: ${faults}`)));
  });
  return {
    url,
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

/** A port on loopback that nobody listens on. */
export function freePort(): Promise<string> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(String(typeof address === "object" ? address?.port : 0)));
    });
  });
}
