export type { Locator } from "../endpoint/endpoint.ts";
export { chooseRoute, connect, openCarrier } from "./connect.ts";
export { listen } from "./listen.ts";
export type { ClientTls, ConnectOptions, Listener, ListenOptions, ServerTls } from "./types.ts";
export { acceptUpgrade, refuseUpgrade, UpgradeRefused } from "./websocket.ts";
