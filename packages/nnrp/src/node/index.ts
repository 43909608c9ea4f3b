export type {
  ClientTls,
  ConnectOptions,
  Listener,
  ListenOptions,
  ServerTls,
  TransportPolicy,
} from "./types.ts";
