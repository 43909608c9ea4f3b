import { createSocket, type Socket } from "node:dgram";
import { networkInterfaces } from "node:os";
import makeMulticast, { type MulticastDNS, type QueryOutgoingPacket, type ResponsePacket } from "multicast-dns";

/** Sends to and hears from every network of this machine. */
export interface Multicast {
  query(packet: QueryOutgoingPacket): void;
  close(): void;
}

export interface MulticastEvents {
  /** A packet that could be read; others are passed over. */
  onResponse(packet: ResponsePacket): void;
  /** A network was joined: whoever is there has not been asked yet. */
  onJoined(): void;
  /** mDNS can't be used on a network, or not at all. */
  onFault(error: Error): void;
}

export type OpenMulticast = (events: MulticastEvents) => Multicast;

/** Milliseconds between looks at the machine's networks. */
const lookIntervalMs = 5_000;

/** One socket for each IPv4 address that is not loopback, as they come and go. Does not keep the process alive. */
export const openMulticast: OpenMulticast = ({ onResponse, onJoined, onFault }) => {
  const sockets = new Map<string, MulticastDNS>();
  const look = (): void => {
    const addresses = localAddresses();
    for (const [address, socket] of sockets) {
      if (addresses.includes(address)) continue;
      sockets.delete(address);
      socket.destroy();
    }
    for (const address of addresses) {
      if (sockets.has(address)) continue;
      // A socket that is bound to one address is not given what was sent to the group.
      const socket = makeMulticast({ interface: address, bind: "0.0.0.0", socket: openSocket() });
      sockets.set(address, socket);
      socket.on("response", onResponse);
      socket.on("error", onFault);
      socket.on("warning", () => {});
      socket.once("ready", onJoined);
    }
  };
  look();
  const timer = setInterval(look, lookIntervalMs);
  timer.unref();
  return {
    query(packet) {
      for (const socket of sockets.values()) socket.query(packet);
    },
    close() {
      clearInterval(timer);
      for (const socket of sockets.values()) socket.destroy();
      sockets.clear();
    },
  };
};

function localAddresses(): readonly string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
}

function openSocket(): Socket {
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  guard(socket);
  return socket;
}

/** Bytes of a packet (RFC 6762 §17), and records that one may hold. */
const mostBytes = 9_000;
const mostRecords = 128;

/**
 * Keeps packets from being decoded that bring nothing or are made to be slow: questions of others, and those whose head
 * promises more records than any service announces. A few bytes could cost tens of milliseconds each.
 */
export function guard(socket: Pick<Socket, "emit">): void {
  const emit = socket.emit.bind(socket);
  socket.emit = (event: string | symbol, ...args: unknown[]): boolean =>
    (event !== "message" || isAnswer(args[0])) && emit(event, ...args);
}

function isAnswer(packet: unknown): boolean {
  if (!Buffer.isBuffer(packet) || packet.length < 12 || packet.length > mostBytes) return false;
  const counts = [4, 6, 8, 10].map((place) => packet.readUInt16BE(place));
  return packet.readUInt8(2) >= 0x80 && counts.reduce((sum, count) => sum + count) <= mostRecords;
}
