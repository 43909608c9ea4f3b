import type { Socket } from "node:net";

export type WatchedSocket = Pick<Socket, "once" | "destroy" | "destroyed">;

const listeners = new WeakMap<WatchedSocket, Set<() => void>>();

/**
 * Calls once when the socket closes. Any number of requests of one connection may wait for it.
 * @returns a function that ends the wait.
 */
export function onSocketClose(socket: WatchedSocket, call: () => void): () => void {
  let calls = listeners.get(socket);
  if (calls === undefined) {
    const all = new Set<() => void>();
    calls = all;
    listeners.set(socket, all);
    socket.once("close", () => {
      for (const each of [...all]) each();
    });
  }
  calls.add(call);
  return () => calls.delete(call);
}
