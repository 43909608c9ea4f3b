/** What the client can do under Node only: finding services of the local network by mDNS. */
export { type DiscoverOptions, discover } from "./discover.ts";
export type { Multicast, MulticastEvents, OpenMulticast } from "./multicast.ts";
export {
  type FoundService,
  type ServiceWatch,
  type WatchServicesOptions,
  watchServices,
} from "./service-watch.ts";
export { formatTxt, type ServiceTxt } from "./txt.ts";
