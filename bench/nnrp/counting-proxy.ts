import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:net";

/** Hands bytes on between a client and a server, and counts those of the server. */
interface CountingProxy {
  /** The address for the client. */
  readonly uri: string;
  /** Of the server so far. */
  readonly bytes: number;
  close(): void;
}

/** @param uri of the server: `tcp://`, `ws://`, `http://` with a port, or `unix://` */
export async function startCountingProxy(uri: string): Promise<CountingProxy> {
  const isSocketFile = uri.startsWith("unix://");
  const path = uri.slice("unix://".length);
  let bytes = 0;
  const server = createServer((near) => {
    const far = isSocketFile ? connect(path) : connect(Number(new URL(uri).port), "127.0.0.1");
    far.on("data", (chunk) => {
      bytes += chunk.byteLength;
    });
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => [near, far].map((each) => each.destroy()));
  });
  const own = `${path}.counted`;
  await new Promise<void>((done) => (isSocketFile ? server.listen(own, done) : server.listen(0, "127.0.0.1", done)));
  return {
    uri: isSocketFile ? `unix://${own}` : uri.replace(/:\d+/, `:${(server.address() as AddressInfo).port}`),
    get bytes() {
      return bytes;
    },
    close: () => server.close(),
  };
}
